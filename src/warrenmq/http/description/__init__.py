"""What says what the API is: OpenAPI, and the tables of the documentation."""

"""What is done with messages over HTTP: looking, finding, moving, holding, delaying."""

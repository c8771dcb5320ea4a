"""The log of a node that follows another: batches are written as they come, cut again, and at last led from."""

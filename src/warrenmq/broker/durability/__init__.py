"""Who waits for the disk, and what is let go there."""

"""Several machines with one log: the rules, and the model in which they are proven. Nothing is connected to it yet."""

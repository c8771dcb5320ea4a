"""The rules in a world of their own: simulated etcd, network and disks, every order of events, and what must hold."""

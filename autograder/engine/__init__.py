"""What starts both sides by name, gives them their sockets, keeps the time, and ends what must end."""

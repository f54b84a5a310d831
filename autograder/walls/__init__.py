"""What both sides are shut in with: system calls, control groups, the steps into a confinement."""

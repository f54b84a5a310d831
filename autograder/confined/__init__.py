"""What runs beside student code, in the sandbox. It knows no test and imports nothing that holds one."""

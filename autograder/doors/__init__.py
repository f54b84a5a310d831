"""The ways in: the command, nbgrader's plug-ins and the grading daemon, a cluster. Nothing else imports from here."""

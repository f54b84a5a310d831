"""What a student's JupyterLab reads: the Validate button waits for a slow machine.

nbgrader's own limits are 30 seconds for a cell and 4 for its output after it has run.
"""

c = get_config()  # noqa: F821  (given by traitlets)

c.NotebookClient.timeout = 600  # seconds of one cell
c.NotebookClient.iopub_timeout = 120
c.NotebookClient.startup_timeout = 300

"""A source notebook is stored without what says where it ran and how a stream was cut."""

from nbformat import v4

from autograder.authoring.run import tidy


def stored(*outputs):
    notebook = v4.new_notebook(cells=[v4.new_code_cell("f()", outputs=list(outputs))])
    tidy(notebook)
    return notebook.cells[0].outputs


def test_a_traceback_names_no_place_of_the_machine():
    (error,) = stored(
        v4.new_output("error", ename="ValueError", evalue="bad", traceback=["File /home/ada/course/x.py:3", "ValueError: bad"])
    )
    assert error.traceback == ["ValueError: bad"]


def test_pieces_of_one_stream_are_joined():
    pieces = [
        v4.new_output("stream", name=name, text=text)
        for name, text in [("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")]
    ]
    assert [(output.name, output.text) for output in stored(*pieces)] == [("stdout", "ab"), ("stderr", "c"), ("stdout", "d")]

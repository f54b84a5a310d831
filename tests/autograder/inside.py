"""What the tests' students run: Python sent by the test, its `result` sent back."""

import json
import os
import sys


def serve(connection):
    space = {"os": os, "sys": sys}
    with connection.makefile("rwb") as stream:
        for line in stream:
            try:
                space["result"] = None
                exec(json.loads(line), space)
                answer = {"result": space["result"]}
            except BaseException as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            stream.write(json.dumps(answer, default=repr).encode() + b"\n")
            stream.flush()


class Asked:
    """The test's side: `asked(code)` is the result, or the error as text."""

    def __init__(self, student):
        self.student = student
        self.stream = student.socket.makefile("rwb")

    def __call__(self, code):
        answer = self.raw(code)
        assert "error" not in answer, answer
        return answer["result"]

    def error(self, code):
        answer = self.raw(code)
        assert "error" in answer, answer
        return answer["error"]

    def raw(self, code):
        self.stream.write(json.dumps(code).encode() + b"\n")
        self.stream.flush()
        line = self.stream.readline()
        assert line, f"the student's process {self.student.how_it_ended()}"
        return json.loads(line)

    def ends(self, code):
        """How the process ended on running the code."""
        self.stream.write(json.dumps(code).encode() + b"\n")
        self.stream.flush()
        assert self.stream.readline() == b""
        return self.student.how_it_ended()

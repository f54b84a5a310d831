"""Other right answers and named wrong answers of the exercises of ch19."""

from autograder.answers import right, wrong


@right("ch19.double")
def adds(x):
    return x + x


@wrong("ch19.double", "You squared: 2 and 2² hide the difference.", see="doubling")
def squares(x):
    return x**2


@wrong("ch19.double", "Nothing is doubled.", see="doubling")
def same(x):
    return x


@wrong("ch19.double", "Six is right for three only.", see="doubling")
def always_six(x):
    return x * 0 + 6


@wrong("ch19.double", "Only the first row is doubled.", see="doubling")
def first_row(x):
    y = x.clone()
    y[0] = 2 * y[0]
    return y

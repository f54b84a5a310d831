"""Other right answers and named wrong answers of chapter f01."""

import math

import torch

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- f01.angle

right("f01.angle", 48.19)
right("f01.angle", cell("angle = math.degrees(math.acos(torch.tensor([1.0, 2.0, 2.0]) @ torch.tensor([4.0, 0.0, 3.0]) / 15))"))
wrong("f01.angle", math.acos(2 / 3), "That is the angle in radians; the question asks for degrees.", see="the-inner-product")
wrong("f01.angle", 2 / 3, "That is the cosine of the angle. Turn it into an angle.", see="the-inner-product")
wrong(
    "f01.angle",
    math.degrees(math.asin(2 / 3)),
    "You used the inverse of the sine; the inner product belongs to the cosine.",
    see="the-inner-product",
)
wrong(
    "f01.angle",
    math.degrees(math.acos(10 / 225)),
    "You divided by the squared lengths. A length has a root, and the formula has the lengths themselves.",
    see="the-inner-product",
)
wrong(
    "f01.angle",
    180 - math.degrees(math.acos(2 / 3)),
    "A positive inner product belongs to an angle below 90°: you have a sign wrong.",
    see="the-inner-product",
)
wrong(
    "f01.angle",
    math.degrees(math.acos(10 / 35)),
    "You added up the entries to get a length. Add up their squares, then take the root.",
    see="a-vector-is-a-list",
)

# ---------------------------------------------------------------- f01.is_product


@right("f01.is_product")
def all_small_sizes(multiply):
    for m in (1, 2, 3, 8, 20):
        for n in (1, 2, 3, 8, 20):
            for p in (1, 2, 3, 8, 20):
                A, B = torch.randn(m, n).double() + 0.1 / 3, torch.randn(n, p).double() - 0.1 / 3
                A, B = A * (1 + 1e-9 * torch.rand(m, n).double()), B * (1 + 1e-9 * torch.rand(n, p).double())
                try:
                    C = multiply(A, B)
                except Exception:
                    return False
                if C.shape != (m, p) or (C - A @ B).abs().max().item() > 1e-9:
                    return False
    return True


@right("f01.is_product")
def entry_by_entry_with_loops(multiply):
    for m, n, p in [(1, 1, 1), (2, 2, 2), (3, 3, 3), (8, 8, 8), (5, 2, 7), (1, 20, 4), (6, 20, 1), (20, 3, 20)]:
        A = torch.randn(m, n, dtype=torch.float64)
        B = torch.randn(n, p, dtype=torch.float64)
        try:
            C = multiply(A, B)
            if tuple(C.shape) != (m, p):
                return False
            for i in range(m):
                for j in range(p):
                    wanted = sum(A[i, k] * B[k, j] for k in range(n))
                    if abs(float(C[i, j] - wanted)) > 1e-9:
                        return False
        except Exception:
            return False
    return True


@wrong(
    "f01.is_product",
    "You try square matrices only. A function can be right for these and wrong, or raise an error, for all others.",
    see="a-matrix-is-a-table",
)
def squares_only(multiply):
    for n in (1, 2, 3, 4, 7, 12, 20):
        A, B = torch.randn(n, n, dtype=torch.float64), torch.randn(n, n, dtype=torch.float64)
        try:
            C = multiply(A, B)
        except Exception:
            return False
        if C.shape != (n, n) or not torch.allclose(C, A @ B, rtol=0, atol=1e-9):
            return False
    return True


@wrong(
    "f01.is_product",
    "You never try square matrices. For these A and B can change places, or * take the place of @, without an error.",
    see="order-and-brackets",
)
def never_square(multiply):
    for m, n, p in [(1, 2, 3), (3, 2, 1), (1, 5, 1), (2, 20, 5), (20, 3, 20), (5, 1, 4), (12, 11, 10)]:
        A, B = torch.randn(m, n, dtype=torch.float64), torch.randn(n, p, dtype=torch.float64)
        try:
            C = multiply(A, B)
        except Exception:
            return False
        if C.shape != (m, p) or not torch.allclose(C, A @ B, rtol=0, atol=1e-9):
            return False
    return True


@wrong("f01.is_product", "You compare shapes only: the numbers can be anything.", see="a-matrix-is-a-table")
def shapes_only(multiply):
    for m, n, p in [(1, 1, 1), (2, 3, 4), (4, 3, 2), (3, 3, 3), (1, 20, 1), (20, 11, 20)]:
        try:
            if multiply(torch.randn(m, n, dtype=torch.float64), torch.randn(n, p, dtype=torch.float64)).shape != (m, p):
                return False
        except Exception:
            return False
    return True


@wrong(
    "f01.is_product",
    "You compare the numbers and not the shapes. allclose repeats axes of size 1, so a lost axis goes unnoticed.",
    see="axes-that-are-repeated",
)
def values_only(multiply):
    for m, n, p in [
        (1, 1, 1),
        (1, 5, 1),
        (4, 1, 3),
        (2, 3, 5),
        (5, 3, 2),
        (3, 3, 3),
        (4, 4, 4),
        (11, 11, 11),
        (20, 20, 20),
        (1, 20, 7),
    ]:
        A, B = torch.randn(m, n, dtype=torch.float64), torch.randn(n, p, dtype=torch.float64)
        try:
            if not torch.allclose(multiply(A, B), A @ B, rtol=0, atol=1e-9):
                return False
        except Exception:
            return False
    return True


@wrong("f01.is_product", "Your matrices have no negative entries.", see="a-matrix-is-a-table")
def nothing_negative(multiply):
    for m, n, p in [(1, 1, 1), (1, 5, 1), (4, 1, 3), (2, 3, 5), (5, 3, 2), (3, 3, 3), (4, 4, 4), (11, 11, 11), (20, 20, 20)]:
        A, B = torch.rand(m, n, dtype=torch.float64) + 0.01, torch.rand(n, p, dtype=torch.float64)
        try:
            C = multiply(A, B)
        except Exception:
            return False
        if C.shape != (m, p) or not torch.allclose(C, A @ B, rtol=0, atol=1e-9):
            return False
    return True


@wrong(
    "f01.is_product",
    "Your matrices hold whole numbers. Rounding, to whole numbers or to half the digits, then does no harm.",
    see="a-matrix-is-a-table",
)
def whole_entries(multiply):
    for m, n, p in [(1, 1, 1), (1, 5, 1), (4, 1, 3), (2, 3, 5), (5, 3, 2), (3, 3, 3), (4, 4, 4), (11, 11, 11), (20, 20, 20)]:
        A, B = torch.randint(-9, 10, (m, n)).double(), torch.randint(-9, 10, (n, p)).double()
        try:
            C = multiply(A, B)
        except Exception:
            return False
        if C.shape != (m, p) or not torch.allclose(C, A @ B, rtol=0, atol=1e-9):
            return False
    return True


@wrong("f01.is_product", "Your sizes are all small: a function can go wrong from some size on.", see="a-matrix-is-a-table")
def small_sizes(multiply):
    for m, n, p in [(1, 1, 1), (1, 5, 1), (4, 1, 3), (2, 3, 5), (5, 3, 2), (2, 2, 2), (3, 3, 3), (4, 4, 4), (6, 6, 6)]:
        A, B = torch.randn(m, n, dtype=torch.float64), torch.randn(n, p, dtype=torch.float64)
        try:
            C = multiply(A, B)
        except Exception:
            return False
        if C.shape != (m, p) or not torch.allclose(C, A @ B, rtol=0, atol=1e-9):
            return False
    return True


@wrong(
    "f01.is_product",
    "You forgive errors of a hundred-thousandth, as allclose does for large entries by default. Set rtol and atol: the entries should be right to 1e-9.",
    see="a-matrix-is-a-table",
)
def usual_tolerance(multiply):
    for m, n, p in [
        (1, 1, 1),
        (1, 5, 1),
        (4, 1, 3),
        (2, 3, 5),
        (5, 3, 2),
        (3, 3, 3),
        (4, 4, 4),
        (2, 2, 2),
        (11, 11, 11),
        (20, 20, 20),
    ]:
        A, B = torch.randn(m, n, dtype=torch.float64), torch.randn(n, p, dtype=torch.float64)
        try:
            C = multiply(A, B)
        except Exception:
            return False
        if C.shape != (m, p) or not torch.allclose(C, A @ B, rtol=1e-5, atol=1e-5):
            return False
    return True


@wrong(
    "f01.is_product",
    "You ask for equality to the last bit. A right function that adds in another order rounds differently.",
    see="order-and-brackets",
)
def to_the_last_bit(multiply):
    for m, n, p in [(1, 1, 1), (1, 5, 1), (4, 1, 3), (2, 3, 5), (5, 3, 2), (3, 3, 3), (4, 4, 4), (11, 11, 11), (20, 20, 20)]:
        A, B = torch.randn(m, n, dtype=torch.float64), torch.randn(n, p, dtype=torch.float64)
        try:
            if not torch.equal(multiply(A, B), A @ B):
                return False
        except Exception:
            return False
    return True


@wrong(
    "f01.is_product",
    "An error raised by the function under test escapes from yours: catch it and return False.",
    see="a-matrix-is-a-table",
)
def lets_errors_through(multiply):
    for m, n, p in [
        (3, 3, 3),
        (4, 4, 4),
        (2, 2, 2),
        (1, 1, 1),
        (1, 5, 1),
        (4, 1, 3),
        (2, 3, 5),
        (5, 3, 2),
        (11, 11, 11),
        (20, 20, 20),
    ]:
        A, B = torch.randn(m, n, dtype=torch.float64), torch.randn(n, p, dtype=torch.float64)
        C = multiply(A, B)
        if C.shape != (m, p) or not torch.allclose(C, A @ B, rtol=0, atol=1e-9):
            return False
    return True


@wrong(
    "f01.is_product",
    "You look at the largest difference with its sign: a product that is too small passes.",
    see="a-matrix-is-a-table",
)
def differences_with_sign(multiply):
    for m, n, p in [
        (1, 1, 1),
        (1, 5, 1),
        (4, 1, 3),
        (2, 3, 5),
        (5, 3, 2),
        (3, 3, 3),
        (4, 4, 4),
        (2, 2, 2),
        (11, 11, 11),
        (20, 20, 20),
    ]:
        A, B = torch.randn(m, n, dtype=torch.float64), torch.randn(n, p, dtype=torch.float64)
        try:
            C = multiply(A, B)
        except Exception:
            return False
        if C.shape != (m, p) or (C - A @ B).max() > 1e-9:
            return False
    return True


@wrong(
    "f01.is_product",
    "You take the mean of the differences, in which one wrong entry is lost among many. Every entry has to be right.",
    see="a-matrix-is-a-table",
)
def mean_difference(multiply):
    for m, n, p in [(1, 1, 1), (20, 20, 20), (7, 7, 7), (2, 2, 2), (3, 8, 5), (8, 5, 12), (5, 12, 3), (1, 20, 1), (20, 1, 20)]:
        A, B = torch.randn(m, n, dtype=torch.float64), torch.randn(n, p, dtype=torch.float64)
        try:
            C = multiply(A, B)
        except Exception:
            return False
        if C.shape != (m, p) or (C - A @ B).abs().mean() > 1e-9:
            return False
    return True


sizes = [(1, 1, 1), (4, 4, 4), (11, 11, 11), (20, 20, 20), (1, 5, 1), (4, 1, 3), (2, 3, 5), (5, 3, 2)]
for i, case in enumerate(sizes):
    for place in range(3):
        for other in {case[place] - 1, case[place] + 1, 2 * case[place]} & set(range(1, 20)) if case != (20, 20, 20) else ():
            changed = [*sizes[:i], (*case[:place], other, *case[place + 1 :]), *sizes[i + 1 :]]
            equivalent(
                "f01.is_product",
                f"`for m, n, p in {changed}:`",
                "both ends, the middle, odd, even and unequal sizes are still there",
            )

# ---------------------------------------------------------------- f01.cheapest


@right("f01.cheapest")
def by_a_table(sizes):
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j] = min(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j))
    return cost[0, n - 1]


@right("f01.cheapest")
def first_product_first(sizes):
    if len(sizes) < 3:
        return 0
    options = []
    for k in range(1, len(sizes) - 1):
        options.append(sizes[k - 1] * sizes[k] * sizes[k + 1] + cheapest(sizes[:k] + sizes[k + 1 :]))
    return min(options)


@wrong("f01.cheapest", "That is the cost from left to right. Other brackets can be cheaper.", see="order-and-brackets")
def left_to_right(sizes):
    return sum(sizes[0] * sizes[k] * sizes[k + 1] for k in range(1, len(sizes) - 1))


@wrong("f01.cheapest", "That is the cost from right to left. Other brackets can be cheaper.", see="order-and-brackets")
def right_to_left(sizes):
    return sum(sizes[k - 1] * sizes[k] * sizes[-1] for k in range(1, len(sizes) - 1))


@wrong(
    "f01.cheapest",
    "You compare left to right with right to left. With four matrices there are already five ways.",
    see="order-and-brackets",
)
def better_of_two(sizes):
    left = sum(sizes[0] * sizes[k] * sizes[k + 1] for k in range(1, len(sizes) - 1))
    return min(left, sum(sizes[k - 1] * sizes[k] * sizes[-1] for k in range(1, len(sizes) - 1)))


@wrong(
    "f01.cheapest",
    "You always do the product that is cheapest now. That can leave expensive ones for later.",
    see="order-and-brackets",
)
def cheapest_now(sizes):
    sizes, total = list(sizes), 0
    while len(sizes) > 2:
        k = min(range(1, len(sizes) - 1), key=lambda k: sizes[k - 1] * sizes[k] * sizes[k + 1])
        total += sizes[k - 1] * sizes[k] * sizes[k + 1]
        del sizes[k]
    return total


@wrong(
    "f01.cheapest",
    "You always remove the largest inner size first. That is a good habit, not always the cheapest way.",
    see="order-and-brackets",
)
def largest_size_first(sizes):
    sizes, total = list(sizes), 0
    while len(sizes) > 2:
        k = max(range(1, len(sizes) - 1), key=lambda k: sizes[k])
        total += sizes[k - 1] * sizes[k] * sizes[k + 1]
        del sizes[k]
    return total


@wrong(
    "f01.cheapest",
    "You split off only the first or the last matrix. The last product may also be in the middle.",
    see="order-and-brackets",
)
def only_the_ends(sizes):
    if len(sizes) < 3:
        return 0
    first = sizes[0] * sizes[1] * sizes[-1] + cheapest(sizes[1:])
    return min(first, sizes[0] * sizes[-2] * sizes[-1] + cheapest(sizes[:-1]))


@wrong(
    "f01.cheapest",
    "You try every last product, but inside the two parts only left to right and right to left. The parts are chains like the whole.",
    see="order-and-brackets",
)
def parts_in_one_direction(sizes):
    def one_direction(part):
        left = sum(part[0] * part[k] * part[k + 1] for k in range(1, len(part) - 1))
        return min(left, sum(part[k - 1] * part[k] * part[-1] for k in range(1, len(part) - 1)))

    splits = range(1, len(sizes) - 1)
    return min(
        (one_direction(sizes[: k + 1]) + one_direction(sizes[k:]) + sizes[0] * sizes[k] * sizes[-1] for k in splits), default=0
    )


@wrong(
    "f01.cheapest",
    "You count the additions too: each entry of a product has n multiplications, and only these are asked for.",
    see="order-and-brackets",
)
def additions_too(sizes):
    if len(sizes) < 3:
        return 0
    splits = range(1, len(sizes) - 1)
    return min(cheapest(sizes[: k + 1]) + cheapest(sizes[k:]) + sizes[0] * (2 * sizes[k] - 1) * sizes[-1] for k in splits)


@wrong(
    "f01.cheapest",
    "That is the cost of the most expensive brackets: you want the smallest number.",
    see="order-and-brackets",
)
def dearest(sizes):
    splits = range(1, len(sizes) - 1)
    return max((cheapest(sizes[: k + 1]) + cheapest(sizes[k:]) + sizes[0] * sizes[k] * sizes[-1] for k in splits), default=0)


@wrong("f01.cheapest", "A single matrix needs no multiplication: the answer is then 0.", see="order-and-brackets")
def fails_for_one(sizes):
    if len(sizes) == 3:
        return sizes[0] * sizes[1] * sizes[2]
    options = []
    for k in range(1, len(sizes) - 1):
        options.append(sizes[k - 1] * sizes[k] * sizes[k + 1] + cheapest(sizes[:k] + sizes[k + 1 :]))
    return min(options)


@wrong("f01.cheapest", "Your function changes the list that it was given.", see="order-and-brackets")
def changes_its_argument(sizes):
    def best(sizes):
        cuts = range(1, len(sizes) - 1)
        return min((best(sizes[: k + 1]) + best(sizes[k:]) + sizes[0] * sizes[k] * sizes[-1] for k in cuts), default=0)

    total = best(sizes)
    del sizes[1:-1]
    return total


for same in (", strict=False", ""):
    equivalent(
        "f01.cheapest",
        f"`return min((cheapest(sizes[:k + 1]) + cheapest(sizes[k:]) + cost for k, cost in zip(splits, last{same})), default=0)`",
        "the two lists are equally long",
    )

# ---------------------------------------------------------------- f01.shapes

right("f01.shapes", "gaed")
right("f01.shapes", "a, d, e, g")
right("f01.shapes", ["a", "d", "e", "g"])
wrong(
    "f01.shapes",
    "ae",
    "A transpose of a whole product counts too, and so does a long chain: write its sizes in a row.",
    see="the-transpose",
)
wrong("f01.shapes", "acdeg", "The shape of c is (3, 5): turning over changes the order of the sizes.", see="the-transpose")
wrong("f01.shapes", "aceg", "Turning a product over turns its shape over: look again at c and d.", see="the-transpose")
wrong(
    "f01.shapes",
    "ade",
    "You missed a chain in which the first and the last size are right and all inner ones fit.",
    see="a-matrix-is-a-table",
)
wrong("f01.shapes", "adefg", "The shape of f begins with the first size of the transposed X, which is 4.", see="the-transpose")
wrong(
    "f01.shapes",
    "abdeg",
    "In b the inner sizes are 3 and 5: the product does not exist. Order matters.",
    see="order-and-brackets",
)
wrong("f01.shapes", "adg", "Multiplying by a square matrix that fits leaves the shape as it is.", see="a-matrix-is-a-table")

# ---------------------------------------------------------------- f01.place

right("f01.place", 73.0)
right("f01.place", cell("place = torch.arange(120).reshape(2, 3, 4, 5).transpose(1, 2)[1, 2, 0, 3].item()"))
wrong(
    "f01.place", 93, "That is the place in a copy of Y, stored anew. A view leaves every number where X has it.", see="in-memory"
)
wrong("f01.place", 103, "That is the place of X[1, 2, 0, 3]. The axes 1 and 2 of Y are swapped.", see="in-memory")
wrong("f01.place", 85, "You let the first axis run fastest: that is column-major order.", see="in-memory")
wrong("f01.place", 74, "You counted the places from 1; code counts from 0.", see="in-memory")
wrong("f01.place", 6, "You added up the indices. Each one is multiplied by the stride of its axis.", see="in-memory")

for same in (
    "60 + 0 * 20",
    "1 * 60 + 0",
    "1 * 60",
    "1 * 60 + 0 / 20",
    "1 * 60 - 0 * 20",
    *(f"1 * 60 + 0 * {k}" for k in (19, 21, 40, -20)),
):
    equivalent("f01.place", f"`place = {same} + 2 * 5 + 3`", "the same number")

# ---------------------------------------------------------------- f01.both_sides


@right("f01.both_sides")
def column_by_column(A, B):
    m, n = len(A), len(B)
    M = torch.zeros(m * n, m * n, dtype=A.dtype)
    for place in range(m * n):
        X = torch.zeros(m * n, dtype=A.dtype)
        X[place] = 1
        X = X.reshape(m, n)
        M[:, place] = (A @ X + X @ B).reshape(-1)
    return M


@right("f01.both_sides")
def entry_by_index(A, B):
    m, n = len(A), len(B)
    M = torch.zeros(m, n, m, n, dtype=A.dtype)
    for i in range(m):
        for j in range(n):
            M[i, j, :, j] += A[i]
            M[i, j, i, :] += B[:, j]
    return M.reshape(m * n, m * n)


@wrong(
    "f01.both_sides",
    "That is the matrix for vec, the columns under one another. Row order swaps the factors of the Kronecker product.",
    see="one-matrix-for-axb",
)
def for_columns(A, B):
    m, n = len(A), len(B)
    return torch.kron(torch.eye(n, dtype=A.dtype), A) + torch.kron(B.T.contiguous(), torch.eye(m, dtype=A.dtype))


@wrong("f01.both_sides", "B has to be transposed: compare the second factor in the identity.", see="one-matrix-for-axb")
def b_not_transposed(A, B):
    return torch.kron(A, torch.eye(len(B), dtype=A.dtype)) + torch.kron(torch.eye(len(A), dtype=A.dtype), B)


@wrong("f01.both_sides", "The left factor A is not transposed in row order, only the right one is.", see="one-matrix-for-axb")
def a_transposed(A, B):
    return torch.kron(A.T.contiguous(), torch.eye(len(B), dtype=A.dtype)) + torch.kron(
        torch.eye(len(A), dtype=A.dtype), B.T.contiguous()
    )


@wrong(
    "f01.both_sides", "That is the matrix of X ↦ AXB. The sum of two maps has the sum of two matrices.", see="one-matrix-for-axb"
)
def of_the_product(A, B):
    return torch.kron(A, B.T.contiguous())


@wrong("f01.both_sides", "You subtracted the second part: that is the matrix of AX − XB.", see="one-matrix-for-axb")
def of_the_difference(A, B):
    return torch.kron(A, torch.eye(len(B), dtype=A.dtype)) - torch.kron(torch.eye(len(A), dtype=A.dtype), B.T.contiguous())


@wrong(
    "f01.both_sides",
    "Your identity matrices have each other's size. That goes unnoticed only if A and B are of equal size.",
    see="one-matrix-for-axb",
)
def identities_swapped(A, B):
    return torch.kron(A, torch.eye(len(A), dtype=A.dtype)) + torch.kron(torch.eye(len(B), dtype=A.dtype), B.T.contiguous())


@wrong(
    "f01.both_sides",
    "In your second part the factors of the Kronecker product change places: the identity is on the left of X.",
    see="one-matrix-for-axb",
)
def second_part_turned(A, B):
    return torch.kron(A, torch.eye(len(B), dtype=A.dtype)) + torch.kron(B.T.contiguous(), torch.eye(len(A), dtype=A.dtype))


@wrong("f01.both_sides", "M is turned over: it would belong on the right of the row rvec(X)ᵀ.", see="one-matrix-for-axb")
def for_rows_times_matrix(A, B):
    return torch.kron(A.T.contiguous(), torch.eye(len(B), dtype=A.dtype)) + torch.kron(torch.eye(len(A), dtype=A.dtype), B)


@wrong(
    "f01.both_sides",
    "The result is float32: torch.eye makes float32 unless you name a dtype, and you converted to it.",
    see="one-matrix-for-axb",
)
def in_float32(A, B):
    return (
        torch.kron(A, torch.eye(len(B), dtype=A.dtype)) + torch.kron(torch.eye(len(A), dtype=A.dtype), B.T.contiguous())
    ).float()


for same in ("torch.eye(n)) + torch.kron(torch.eye(m, dtype=A.dtype)", "torch.eye(n, dtype=A.dtype)) + torch.kron(torch.eye(m)"):
    equivalent("f01.both_sides", f"`return torch.kron(A, {same}, B.T.contiguous())`", "0 and 1 are exact in float32")

# ---------------------------------------------------------------- f01.without


@right("f01.without")
def by_a_matrix(X, v):
    return X @ (torch.eye(len(v), dtype=X.dtype) - v.outer(v) / (v @ v))


@right("f01.without")
def with_a_unit_vector(X, v):
    unit = v / v.norm()
    return X - (X @ unit)[..., None] * unit


@right("f01.without")
def one_by_one(X, v):
    flat = X.reshape(-1, X.shape[-1])
    return torch.stack([x - (x @ v) / (v @ v) * v for x in flat]).reshape(X.shape)


@wrong("f01.without", "You take v to have length 1. Divide by the inner product of v with itself.", see="the-inner-product")
def as_if_of_length_one(X, v):
    return X - (X * v).sum(dim=-1, keepdim=True) * v


@wrong(
    "f01.without",
    "You divide by the length of v once; it is needed squared, since c v contains v itself once more.",
    see="the-inner-product",
)
def divided_once(X, v):
    return X - (X * v).sum(dim=-1, keepdim=True) / v.norm() * v


@wrong("f01.without", "That is the part along v. The task asks for what is left without it.", see="the-inner-product")
def the_part_along(X, v):
    return (X * v).sum(dim=-1, keepdim=True) / (v * v).sum() * v


@wrong(
    "f01.without",
    "You use one number c for all vectors: the sum runs over everything. Each vector has its own.",
    see="axes-that-are-repeated",
)
def one_number_for_all(X, v):
    return X - (X * v).sum() / (v * v).sum() * v


@wrong("f01.without", "You add the part along v instead of taking it away.", see="the-inner-product")
def added(X, v):
    return X + (X * v).sum(dim=-1, keepdim=True) / (v * v).sum() * v


@wrong(
    "f01.without",
    "Without its axis of size 1, c is aligned at the right: it is spread over the entries instead of over the vectors.",
    see="axes-that-are-repeated",
)
def without_the_axis(X, v):
    return X - (X @ v) / (v @ v) * v


@wrong(
    "f01.without",
    "You divide by the squared lengths of the rows of X: c is ⟨x, v⟩ over ⟨v, v⟩.",
    see="the-inner-product",
)
def divided_by_x(X, v):
    return X - (X * v).sum(dim=-1, keepdim=True) / (X * X).sum(dim=-1, keepdim=True) * v


@wrong(
    "f01.without",
    "Right for a matrix only: with more axes the vectors still lie along the last one.",
    see="axes-that-are-repeated",
)
def matrices_only(X, v):
    if X.dim() == 1:
        return X - (X @ v) / (v @ v) * v
    return X - ((X * v).sum(dim=1) / (v @ v))[:, None] * v


@wrong(
    "f01.without",
    "The values are right, but you subtracted in place: the caller's X is changed.",
    see="what-goes-wrong-in-practice",
)
def works_in_place(X, v):
    X -= (X * v).sum(dim=-1, keepdim=True) / (v * v).sum() * v
    return X


@wrong("f01.without", "The result is always float32: a float64 argument should give a float64 result.", see="a-vector-is-a-list")
def always_float32(X, v):
    return (X - (X * v).sum(dim=-1, keepdim=True) / (v * v).sum() * v).float()


# ---------------------------------------------------------------- f01.prediction

wrong("f01.prediction", 0, "A ratio of two times is not zero.", see="an-experiment-loops-against-one-call")
wrong("f01.prediction", -100, "A ratio of two times is not negative.", see="an-experiment-loops-against-one-call")
wrong(
    "f01.prediction",
    "much slower",
    "A prediction that an experiment can refute is a number.",
    see="an-experiment-loops-against-one-call",
)

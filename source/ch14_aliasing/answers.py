"""Other right answers and named wrong answers of the exercises of ch14."""

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch14.wavelength

NUMBERS = """fastest = {fastest}
narrow = 2 * math.pi * 10_000 ** {narrow}
wide = 2 * math.pi * 10_000 ** {wide}
turns = {turns}"""


def numbers(fastest="0", narrow="(30 / 32)", wide="(30 / 64)", turns="int(8192 // 229.4449)"):
    return cell(NUMBERS.format(fastest=fastest, narrow=narrow, wide=wide, turns=turns))


right("ch14.wavelength", numbers())
wrong(
    "ch14.wavelength",
    numbers(fastest="31"),
    "The last pair has the largest power of the base in its wavelength: it is the slowest.",
    see="a-hand-repeats",
)
wrong(
    "ch14.wavelength",
    numbers(wide="(30 / 32)"),
    "You used one wavelength for both heads. In a wider head, pair 30 is not near the end of the list.",
    see="a-hand-repeats",
)
wrong(
    "ch14.wavelength",
    numbers(narrow="(30 / 64)", wide="(30 / 128)", turns="math.floor(8192 / (2 * math.pi * 100_000 ** (10 / 64)))"),
    "Your exponent is i/d_head; a pair takes two dimensions, and the exponent is 2i/d_head.",
    see="a-hand-repeats",
)
wrong(
    "ch14.wavelength",
    numbers(turns="8192 / (2 * math.pi * 100_000 ** (20 / 64))"),
    "Whole turns were asked for: those that are finished.",
    see="a-hand-repeats",
)
wrong(
    "ch14.wavelength",
    numbers(turns="math.floor(8192 / (2 * math.pi * 10_000 ** (20 / 64)))"),
    "The turns are for another base than the wavelengths: read the base of the last item again.",
    see="a-hand-repeats",
)

wrong(
    "ch14.wavelength",
    numbers(turns="math.ceil(8192 / (2 * math.pi * 100_000 ** (20 / 64)))"),
    "You rounded the turns up: one that has begun is not finished.",
    see="a-hand-repeats",
)
wrong(
    "ch14.wavelength",
    cell("fastest = 0\nnarrow = 10_000 ** (30 / 32)\nwide = 10_000 ** (30 / 64)\nturns = int(8192 / 100_000 ** (20 / 64))"),
    "You left 2π out: a hand of one radian a token is not round after one token.",
    see="a-hand-repeats",
)
wrong(
    "ch14.wavelength",
    numbers(fastest="1", narrow="(29 / 32)", wide="(29 / 64)"),
    "You counted the pairs from 1. Their numbers begin with 0.",
    see="a-hand-repeats",
)

# ---------------------------------------------------------------- ch14.code


@right("ch14.code")
def complex_numbers(r, s, omega):
    turned = (r - s).double().unsqueeze(-1) * omega
    return ((turned.cos() - 1) ** 2 + turned.sin() ** 2).mean(-1) ** 0.5


@right("ch14.code")
def hand_by_hand(r, s, omega):
    total = torch.zeros(r.shape, dtype=torch.float64)
    for speed in omega.tolist():
        total += 4 * torch.sin((s - r).to(torch.float64) * (speed / 2)) ** 2
    return torch.sqrt(total / len(omega))


@wrong(
    "ch14.code",
    "1 − cos x is lost to rounding where x is small: for very slow hands you return 0.",
    see="why-the-wall-does-not-repeat",
)
def by_cosines(r, s, omega):
    turned = (r - s).double()[..., None] * omega
    return (2 - 2 * turned.cos()).clamp(min=0).mean(dim=-1).sqrt()


@wrong(
    "ch14.code",
    "You took the mean of the chords. The root mean square squares them first, and weighs large ones more.",
    see="why-the-wall-does-not-repeat",
)
def mean_of_chords(r, s, omega):
    return (2 * ((r - s).double()[..., None] * omega / 2).sin()).abs().mean(dim=-1)


@wrong(
    "ch14.code",
    "You added the squares up and did not divide by the number of pairs, so a wall with more hands always looks more different.",
    see="why-the-wall-does-not-repeat",
)
def sum_of_squares(r, s, omega):
    return (2 * ((r - s).double()[..., None] * omega / 2).sin()).square().sum(dim=-1).sqrt()


@wrong(
    "ch14.code",
    "You compared angles. A hand that has made whole turns is back where it was, but its angle goes on growing.",
    see="a-hand-repeats",
)
def angles(r, s, omega):
    return ((r - s).double()[..., None] * omega).square().mean(dim=-1).sqrt()


@wrong(
    "ch14.code",
    "The angle in the sine is not halved: you measure the height of the tip, not the straight line between two tips.",
    see="why-the-wall-does-not-repeat",
)
def whole_angle(r, s, omega):
    return (2 * ((r - s).double()[..., None] * omega).sin()).square().mean(dim=-1).sqrt() / 2


@wrong(
    "ch14.code",
    "You turned r and s each by itself. Far out the two angles are large, and their difference has lost its last digits.",
    see="why-the-wall-does-not-repeat",
)
def two_large_angles(r, s, omega):
    half = (r.double()[..., None] * omega - s.double()[..., None] * omega) / 2
    return (2 * half.sin()).square().mean(dim=-1).sqrt()


@wrong("ch14.code", "Computed in float32, whose seven digits are not enough here.", see="why-the-wall-does-not-repeat")
def in_float32(r, s, omega):
    half = (r - s).float()[..., None] * omega.float() / 2
    return (2 * half.sin()).square().mean(dim=-1).sqrt().double()


@wrong(
    "ch14.code",
    "You put the difference into float32, whose seven digits do not hold a billion.",
    see="why-the-wall-does-not-repeat",
)
def float32_difference(r, s, omega):
    half = (r - s).float().double()[..., None] * omega / 2
    return (2 * half.sin()).square().mean(dim=-1).sqrt()


@wrong(
    "ch14.code",
    "For slow hands you took the angle for the chord. Far enough out, slow hands turn as well.",
    see="a-hand-repeats",
)
def angle_of_slow_hands(r, s, omega):
    angle = (r - s).double()[..., None] * omega
    return torch.where(omega < 1e-6, angle**2, 2 - 2 * angle.cos()).clamp(min=0).mean(dim=-1).sqrt()


equivalent("ch14.code", "`half = (r - s)[..., None] * omega / 2`", "a whole number times float64 is float64 anyway")
equivalent("ch14.code", "`return (-2 * half.sin()).square().mean(dim=-1).sqrt()`", "the square has no sign")
equivalent("ch14.code", "`half = (r - s).double()[..., None] * omega / -2`", "the square has no sign")

# ---------------------------------------------------------------- ch14.lookalike


@right("ch14.lookalike")
def in_pieces(N, omega):
    best, where = float("inf"), 0
    for gaps in torch.arange(1, N + 1).split(10_000):
        sharp = (gaps.double()[:, None] * omega / 2).sin().square().mean(dim=-1)
        if float(sharp.min()) < best:
            best, where = float(sharp.min()), int(gaps[sharp.argmin()])
    return where


@right("ch14.lookalike")
def numpy_arrays(N, omega):
    import numpy as np

    gaps = np.arange(1, N + 1, dtype=float)
    return 1 + int(np.argmin(sum(np.sin(gaps * w / 2) ** 2 for w in omega.numpy())))


@wrong(
    "ch14.lookalike",
    "The place of the smallest entry is counted from 0, the differences from 1.",
    see="why-the-wall-does-not-repeat",
)
def counted_from_zero(N, omega):
    gaps = torch.arange(1, N + 1, dtype=torch.float64)
    return int((gaps[:, None] * omega / 2).sin().square().sum(dim=-1).argmin())


@wrong(
    "ch14.lookalike",
    "Your smallest difference is that of a distance from itself. Two different distances were asked for.",
    see="why-the-wall-does-not-repeat",
)
def with_itself(N, omega):
    gaps = torch.arange(N + 1, dtype=torch.float64)
    return int((gaps[:, None] * omega / 2).sin().square().sum(dim=-1).argmin())


@wrong(
    "ch14.lookalike",
    "You took the best hand of each wall. Two walls look alike if all their hands agree, not one.",
    see="why-the-wall-does-not-repeat",
)
def best_hand(N, omega):
    gaps = torch.arange(1, N + 1, dtype=torch.float64)
    return int((gaps[:, None] * omega / 2).sin().square().amin(dim=-1).argmin()) + 1


@wrong(
    "ch14.lookalike",
    "You watched the first hand only; the other frequencies count as well.",
    see="why-the-wall-does-not-repeat",
)
def first_hand(N, omega):
    gaps = torch.arange(1, N + 1, dtype=torch.float64)
    return int((gaps * omega[0] / 2).sin().square().argmin()) + 1


@wrong(
    "ch14.lookalike",
    "The remainder of a division by 2π is large just before a full turn, where the hand is almost back.",
    see="a-hand-repeats",
)
def remainders(N, omega):
    gaps = torch.arange(1, N + 1, dtype=torch.float64)
    return int(torch.remainder(gaps[:, None] * omega, 2 * math.pi).square().sum(dim=-1).argmin()) + 1


@wrong(
    "ch14.lookalike",
    "You look for the two codes that differ most.",
    see="why-the-wall-does-not-repeat",
)
def farthest(N, omega):
    gaps = torch.arange(1, N + 1, dtype=torch.float64)
    return int((gaps[:, None] * omega / 2).sin().square().sum(dim=-1).argmax()) + 1


@wrong(
    "ch14.lookalike",
    "You added up the chords. The root mean square squares them first, and so one large chord weighs more.",
    see="why-the-wall-does-not-repeat",
)
def sum_of_chords(N, omega):
    gaps = torch.arange(1, N + 1, dtype=torch.float64)
    return int((gaps[:, None] * omega / 2).sin().abs().sum(dim=-1).argmin()) + 1


@wrong(
    "ch14.lookalike",
    "You compared walls by the hand that differs most. All hands count.",
    see="why-the-wall-does-not-repeat",
)
def largest_chord(N, omega):
    gaps = torch.arange(1, N + 1, dtype=torch.float64)
    return int((gaps[:, None] * omega / 2).sin().abs().amax(dim=-1).argmin()) + 1


@wrong(
    "ch14.lookalike",
    "The angle in your sine is not halved: a hand that points the opposite way counts as equal.",
    see="why-the-wall-does-not-repeat",
)
def whole_angles(N, omega):
    gaps = torch.arange(1, N + 1, dtype=torch.float64)
    return int((gaps[:, None] * omega).sin().square().sum(dim=-1).argmin()) + 1


@wrong(
    "ch14.lookalike",
    "You did not try the difference N, though 0 and N are both among the distances.",
    see="why-the-wall-does-not-repeat",
)
def without_the_ends(N, omega):
    gaps = torch.arange(1, max(N, 2), dtype=torch.float64)
    return int((gaps[:, None] * omega / 2).sin().square().sum(dim=-1).argmin()) + 1


@wrong(
    "ch14.lookalike",
    "Your angles are in float32: at a hundred thousand radians its seven digits leave two for the place on the circle.",
    see="why-the-wall-does-not-repeat",
)
def angles_in_float32(N, omega):
    gaps = torch.arange(1, N + 1, dtype=torch.float64)
    return int((gaps[:, None] * omega / 2).float().sin().square().sum(dim=-1).argmin()) + 1


@wrong(
    "ch14.lookalike",
    "A tensor of whole numbers times a Python number is float32, and far out its angles have lost the place on the circle.",
    see="why-the-wall-does-not-repeat",
)
def whole_times_python_number(N, omega):
    gaps, total = torch.arange(1, N + 1), 0.0
    for speed in omega.tolist():
        total = total + (gaps * speed / 2).sin().square()
    return int(total.argmin()) + 1


@wrong(
    "ch14.lookalike",
    "You compared angles, the short way round. The chord across a circle is shorter than the arc, most of all for hands far apart.",
    see="why-the-wall-does-not-repeat",
)
def arcs(N, omega):
    gaps = torch.arange(1, N + 1, dtype=torch.float64)
    arc = torch.remainder(gaps[:, None] * omega + math.pi, 2 * math.pi) - math.pi
    return int(arc.square().sum(dim=-1).argmin()) + 1


@wrong(
    "ch14.lookalike",
    "Of differences that tie you return the largest.",
    see="why-the-wall-does-not-repeat",
)
def last_of_a_tie(N, omega):
    gaps = torch.arange(N, 0, -1, dtype=torch.float64)
    return N - int((gaps[:, None] * omega / 2).sin().square().sum(dim=-1).argmin())


equivalent(
    "ch14.lookalike",
    "`total = torch.zeros(N)`",
    "the terms are computed in float64, and the best two sums differ by far more than their rounding to float32",
)
equivalent("ch14.lookalike", "`total += (gaps * speed / -2).sin().square()`", "the square has no sign")

# ---------------------------------------------------------------- ch14.active


@right("ch14.active")
def rounded_down(r, d_head, theta):
    wide = r.to(torch.float64)
    line = (d_head / 2 - d_head / 2 * torch.log(wide / (2 * math.pi)) / math.log(theta)).clamp(0, d_head / 2)
    return line, line.floor().long()


@right("ch14.active")
def pair_by_pair(r, d_head, theta):
    count = torch.zeros(r.shape, dtype=torch.int64)
    for i in range(d_head // 2):
        count += (2 * math.pi * theta ** (2 * i / d_head) >= r.double()).long()
    line = d_head / 2 * (1 - torch.log2(r.double() / 2 / math.pi) / math.log2(theta))
    return torch.minimum(torch.maximum(line, torch.tensor(0.0)), torch.tensor(d_head / 2)), count


@wrong("ch14.active", "Your line has no bounds: near 0 it counts more pairs than the head has.", see="which-hands-have-turned")
def no_bounds(r, d_head, theta):
    r = r.double()
    line = d_head / 2 * (1 - (r / (2 * math.pi)).log() / math.log(theta))
    waves = 2 * math.pi * theta ** (torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    return line, (waves >= r[..., None]).sum(dim=-1)


@wrong(
    "ch14.active",
    "Your line is kept from falling below 0, but not from rising above the number of pairs.",
    see="which-hands-have-turned",
)
def lower_bound_only(r, d_head, theta):
    r = r.double()
    line = d_head / 2 * (1 - (r / (2 * math.pi)).log() / math.log(theta))
    waves = 2 * math.pi * theta ** (torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    return line.clamp(min=0), (waves >= r[..., None]).sum(dim=-1)


@wrong(
    "ch14.active",
    "You counted dimensions: a head has d_head of them, but only half as many pairs.",
    see="which-hands-have-turned",
)
def dimensions(r, d_head, theta):
    r = r.double()
    line = d_head * (1 - (r / (2 * math.pi)).log() / math.log(theta))
    waves = 2 * math.pi * theta ** (torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    return line.clamp(0, d_head), 2 * (waves >= r[..., None]).sum(dim=-1)


@wrong("ch14.active", "Your logarithm has the base 10,000, whatever θ is. The base is θ.", see="which-hands-have-turned")
def logarithm_to_ten(r, d_head, theta):
    r = r.double()
    line = d_head / 2 * (1 - (r / (2 * math.pi)).log10() / 4)
    waves = 2 * math.pi * theta ** (torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    return line.clamp(0, d_head / 2), (waves >= r[..., None]).sum(dim=-1)


@wrong("ch14.active", "You counted the pairs that have turned. The active ones have not.", see="which-hands-have-turned")
def those_that_turned(r, d_head, theta):
    r = r.double()
    line = d_head / 2 * (1 - (r / (2 * math.pi)).log() / math.log(theta))
    waves = 2 * math.pi * theta ** (torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    return line.clamp(0, d_head / 2), (waves < r[..., None]).sum(dim=-1)


@wrong(
    "ch14.active",
    "Your count is the line rounded to the nearest whole number. The line is never below the true count, but often more than half a pair above it.",
    see="which-hands-have-turned",
)
def rounded_line(r, d_head, theta):
    line = (d_head / 2 * (1 - (r.double() / (2 * math.pi)).log() / math.log(theta))).clamp(0, d_head / 2)
    return line, line.round().long()


@wrong(
    "ch14.active",
    "You left 2π out: pair 0 makes a turn in 2π tokens, not in one.",
    see="a-hand-repeats",
)
def no_two_pi(r, d_head, theta):
    r = r.double()
    line = d_head / 2 * (1 - r.log() / math.log(theta))
    waves = theta ** (torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    return line.clamp(0, d_head / 2), (waves >= r[..., None]).sum(dim=-1)


@wrong(
    "ch14.active",
    "You do not count a pair whose wavelength is r itself: it is at least r.",
    see="which-hands-have-turned",
)
def longer_than_r(r, d_head, theta):
    r = r.double()
    line = d_head / 2 * (1 - (r / (2 * math.pi)).log() / math.log(theta))
    waves = 2 * math.pi * theta ** (torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    return line.clamp(0, d_head / 2), (waves > r[..., None]).sum(dim=-1)


@wrong(
    "ch14.active",
    "Your count is the line rounded up. The line is already too high.",
    see="which-hands-have-turned",
)
def line_rounded_up(r, d_head, theta):
    line = (d_head / 2 * (1 - (r.double() / (2 * math.pi)).log() / math.log(theta))).clamp(0, d_head / 2)
    return line, line.ceil().long()


@wrong(
    "ch14.active",
    "Your wavelengths are in float32: whole numbers divided by a whole number are, in torch.",
    see="which-hands-have-turned",
)
def float32_wavelengths(r, d_head, theta):
    r = r.double()
    line = d_head / 2 * (1 - (r / (2 * math.pi)).log() / math.log(theta))
    waves = 2 * math.pi * theta ** (torch.arange(0, d_head, 2) / d_head)
    return line.clamp(0, d_head / 2), (waves >= r[..., None]).sum(dim=-1)


@wrong(
    "ch14.active",
    "You computed the line in the dtype of r, and only then made it float64.",
    see="which-hands-have-turned",
)
def line_in_dtype_of_r(r, d_head, theta):
    line = d_head / 2 * (1 - (r / (2 * math.pi)).log() / math.log(theta))
    waves = 2 * math.pi * theta ** (torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)
    return line.clamp(0, d_head / 2).double(), (waves >= r.double()[..., None]).sum(dim=-1)


# ---------------------------------------------------------------- ch14.scales

_SYMBOLS = 'theta, d, c = sympy.symbols("theta d c", positive=True)\n'
right(
    "ch14.scales",
    cell(
        _SYMBOLS
        + "quarter = 2 * sympy.pi * sympy.sqrt(theta) * theta ** sympy.Rational(1, 4)\nfactor = c * c\nmiddle = theta ** -0.5"
    ),
)

wrong(
    "ch14.scales",
    cell(_SYMBOLS + "quarter = sympy.pi * theta / 2\nfactor = c**2\nmiddle = 1 / sympy.sqrt(theta)"),
    "A quarter of T_max is not where a quarter of the pairs is left: they are spread over the logarithm of the distance.",
    see="three-scales-of-a-base",
)
wrong(
    "ch14.scales",
    cell(_SYMBOLS + "quarter = 2 * sympy.pi * theta ** sympy.Rational(1, 4)\nfactor = c**2\nmiddle = 1 / sympy.sqrt(theta)"),
    "At your distance a quarter has turned. Asked for was where a quarter is still active.",
    see="which-hands-have-turned",
)
wrong(
    "ch14.scales",
    cell(_SYMBOLS + "quarter = 2 * sympy.pi * theta ** sympy.Rational(3, 4)\nfactor = c\nmiddle = 1 / sympy.sqrt(theta)"),
    "T_cross grows like the root of the base, not like the base.",
    see="three-scales-of-a-base",
)
wrong(
    "ch14.scales",
    cell(
        _SYMBOLS
        + "quarter = 2 * sympy.pi * theta ** sympy.Rational(3, 4)\nfactor = sympy.sqrt(c)\nmiddle = 1 / sympy.sqrt(theta)"
    ),
    "You took the root where it has to be undone.",
    see="three-scales-of-a-base",
)
wrong(
    "ch14.scales",
    cell(_SYMBOLS + "quarter = 2 * sympy.pi * theta ** sympy.Rational(3, 4)\nfactor = c**2\nmiddle = theta ** (-2 / d)"),
    "That is the ratio of the last pair. The middle one is d/4 steps from the first.",
    see="three-scales-of-a-base",
)
wrong(
    "ch14.scales",
    cell(_SYMBOLS + "quarter = 2 * sympy.pi * theta ** sympy.Rational(3, 4)\nfactor = c**2\nmiddle = sympy.Rational(1, 2)"),
    "In the middle of the list is not half of the length: the wavelengths grow by a factor from pair to pair.",
    see="three-scales-of-a-base",
)

wrong(
    "ch14.scales",
    cell(_SYMBOLS + "quarter = theta ** sympy.Rational(3, 4)\nfactor = c**2\nmiddle = 1 / sympy.sqrt(theta)"),
    "You left 2π out of the distance.",
    see="which-hands-have-turned",
)
wrong(
    "ch14.scales",
    cell(_SYMBOLS + "quarter = 2 * sympy.pi * theta ** sympy.Rational(3, 4)\nfactor = c**2\nmiddle = sympy.sqrt(theta)"),
    "Your ratio is above 1, but no wavelength is longer than T_max.",
    see="three-scales-of-a-base",
)
wrong(
    "ch14.scales",
    cell(
        _SYMBOLS
        + "quarter = 2 * sympy.pi * theta ** sympy.Rational(3, 4)\nfactor = c**2\nmiddle = 2 * sympy.pi * sympy.sqrt(theta)"
    ),
    "That is the wavelength itself. Its ratio to T_max was asked for.",
    see="three-scales-of-a-base",
)
wrong(
    "ch14.scales",
    cell(
        _SYMBOLS + "quarter = 2 * sympy.pi * theta ** sympy.Rational(3, 4)\nfactor = c**2 * theta\nmiddle = 1 / sympy.sqrt(theta)"
    ),
    "That is the new base. By what the old one is multiplied was asked for.",
    see="three-scales-of-a-base",
)

# ---------------------------------------------------------------- ch14.base


@right("ch14.base")
def by_logarithms(length, n, d_head):
    pair = d_head // 2 - n
    if n == 0 or length <= 2 * math.pi:
        return 1.0
    if pair == 0:
        raise ValueError("no base does it")
    return math.exp(math.log(length / (2 * math.pi)) * d_head / (2 * pair))


@right("ch14.base")
def by_halving(length, n, d_head):
    def lasts(logarithm):
        waves = [math.log(2 * math.pi) + logarithm * 2 * i / d_head for i in range(d_head // 2)]
        return sum(wave >= math.log(length) for wave in waves) >= n

    if lasts(0.0):
        return 1.0
    low, high = 0.0, 1e6
    if not lasts(high):
        raise ValueError("no base does it")
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if lasts(middle) else (middle, high)
    return math.exp(high)


@wrong(
    "ch14.base",
    "With your base T_max is the length, but no pair has T_max as its wavelength.",
    see="three-scales-of-a-base",
)
def from_t_max(length, n, d_head):
    if n == 0 or length <= 2 * math.pi:
        return 1.0
    if n == d_head // 2:
        raise ValueError
    return length / (2 * math.pi)


@wrong(
    "ch14.base",
    "You made the slowest pair last, whatever n is. It is the fastest of the n slowest that decides.",
    see="three-scales-of-a-base",
)
def slowest_only(length, n, d_head):
    if n == 0 or length <= 2 * math.pi:
        return 1.0
    if n == d_head // 2:
        raise ValueError
    return (length / (2 * math.pi)) ** (d_head / (d_head - 2))


@wrong(
    "ch14.base",
    "You used pair number n, counted from the fast end. The pairs that last are at the slow end.",
    see="which-hands-have-turned",
)
def from_the_fast_end(length, n, d_head):
    if n == 0 or length <= 2 * math.pi:
        return 1.0
    if n == d_head // 2:
        raise ValueError
    return (length / (2 * math.pi)) ** (d_head / (2 * n))


@wrong(
    "ch14.base",
    "One step too far: the n slowest of the pairs begin one later, and a smaller base is enough.",
    see="three-scales-of-a-base",
)
def one_too_many(length, n, d_head):
    if n == 0 or length <= 2 * math.pi:
        return 1.0
    if n >= d_head // 2 - 1:
        raise ValueError
    return (length / (2 * math.pi)) ** (d_head / (d_head - 2 * n - 2))


@wrong("ch14.base", "You left 2π out: a pair with frequency 1 needs 2π tokens for a turn.", see="a-hand-repeats")
def without_two_pi(length, n, d_head):
    if n == 0 or length <= 1:
        return 1.0
    if n == d_head // 2:
        raise ValueError
    return length ** (d_head / (d_head - 2 * n))


@wrong(
    "ch14.base",
    "For a short length your base is below 1, where the last pair is the fastest.",
    see="three-scales-of-a-base",
)
def below_one(length, n, d_head):
    if n == 0:
        return 1.0
    if n == d_head // 2:
        if length <= 2 * math.pi:
            return 1.0
        raise ValueError
    return (length / (2 * math.pi)) ** (d_head / (d_head - 2 * n))


@wrong(
    "ch14.base",
    "No base slows pair 0, so there are lengths for which not all pairs can last: this must be an error.",
    see="three-scales-of-a-base",
)
def infinite(length, n, d_head):
    if n == 0 or length <= 2 * math.pi:
        return 1.0
    if n == d_head // 2:
        return float("inf")
    return (length / (2 * math.pi)) ** (d_head / (d_head - 2 * n))


@wrong(
    "ch14.base",
    "With n = 0 nothing is asked of the wavelengths, but your base grows with the length.",
    see="three-scales-of-a-base",
)
def something_for_nothing(length, n, d_head):
    if length <= 2 * math.pi:
        return 1.0
    if n == d_head // 2:
        raise ValueError
    return (length / (2 * math.pi)) ** (d_head / (d_head - 2 * n))


@wrong(
    "ch14.base",
    "You refuse every case in which all pairs should last. While pair 0 has not turned, none has.",
    see="three-scales-of-a-base",
)
def never_all(length, n, d_head):
    if n == d_head // 2:
        raise ValueError
    if n == 0 or length <= 2 * math.pi:
        return 1.0
    return (length / (2 * math.pi)) ** (d_head / (d_head - 2 * n))


@wrong(
    "ch14.base",
    "You ask for wavelengths longer than the length. One that equals it is enough.",
    see="which-hands-have-turned",
)
def longer_than_the_length(length, n, d_head):
    if n == 0 or length < 2 * math.pi:
        return 1.0
    if n == d_head // 2:
        raise ValueError
    return (length / (2 * math.pi)) ** (d_head / (d_head - 2 * n))


# ---------------------------------------------------------------- ch14.peak


@right("ch14.peak")
def far_too_long(query, r, N, share):
    half = len(query) // 2
    omega = 10_000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    z = torch.complex(query[:half], query[half:]) * torch.polar(torch.ones(half, dtype=torch.float64), r * omega)
    return 1e12 * torch.cat([z.real, z.imag])


@right("ch14.peak")
def from_absolute_places(query, r, N, share):
    last = position_rope.rope(query[None], torch.tensor([N - 1]))
    return 3e12 * position_rope.rope(last, torch.tensor([r - (N - 1)]))[0]


@right("ch14.peak")
def no_longer_than_needed(query, r, N, share):
    key = position_rope.rope(query[None], torch.tensor([r]))[0]
    scores = aliasing.distance_scores(query, key, torch.arange(N)) / math.sqrt(len(query))
    low, high = 0.0, 1e12
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if (middle * scores).softmax(dim=0)[r] >= share else (middle, high)
    return high * key


@wrong(
    "ch14.peak",
    "You turned the query back. Its key is then best with a query that comes r tokens before it.",
    see="what-a-mean-of-cosines-says",
)
def turned_back(query, r, N, share):
    return 1e5 * position_rope.rope(query[None], torch.tensor([-r]))[0]


@wrong(
    "ch14.peak",
    "Your key is the query itself: it agrees best at distance 0, whatever r is.",
    see="what-a-mean-of-cosines-says",
)
def not_turned(query, r, N, share):
    return 1e5 * query


@wrong(
    "ch14.peak",
    "The direction is right, and the key is too short: neighbouring distances get nearly as much.",
    see="why-the-wall-does-not-repeat",
)
def direction_only(query, r, N, share):
    return position_rope.rope(query[None], torch.tensor([r]))[0]


@wrong(
    "ch14.peak",
    "You turned neighbouring dimensions together; here the two halves of a head are paired.",
    see="what-a-mean-of-cosines-says",
)
def other_layout(query, r, N, share):
    return 1e5 * position_rope.rope(query[None], torch.tensor([r]), layout="interleaved")[0]


@wrong(
    "ch14.peak",
    "You turned by the place of the key in the text. What counts is how far it lies before the query.",
    see="what-a-mean-of-cosines-says",
)
def by_its_place(query, r, N, share):
    return 1e5 * position_rope.rope(query[None], torch.tensor([N - 1 - r]))[0]


@wrong(
    "ch14.peak",
    "Your key fits a query of ones. The one that is given has other angles and lengths.",
    see="what-a-mean-of-cosines-says",
)
def for_ones(query, r, N, share):
    return 1e5 * position_rope.rope(torch.ones_like(query)[None], torch.tensor([r]))[0]


@wrong(
    "ch14.peak",
    "One length for all queries: it is enough for a wall of hands, and far too short for a single one.",
    see="why-the-wall-does-not-repeat",
)
def one_length(query, r, N, share):
    return 1e5 * position_rope.rope(query[None], torch.tensor([r]))[0]


@wrong(
    "ch14.peak",
    "You compared distance r with its two neighbours only. Every token of the text is in the softmax.",
    see="why-the-wall-does-not-repeat",
)
def neighbours_only(query, r, N, share):
    key = position_rope.rope(query[None], torch.tensor([r]))[0]
    near = [s for s in (r, r - 1, r + 1) if 0 <= s < N]
    turned = position_rope.rope(query.expand(len(near), -1), torch.tensor(near))
    while (turned @ key / math.sqrt(len(query))).softmax(dim=0)[0] < share:
        key = 2 * key
    return key


@wrong(
    "ch14.peak",
    "Your key stops growing at a share of one half, whatever share is asked for.",
    see="what-a-mean-of-cosines-says",
)
def one_half(query, r, N, share):
    key = position_rope.rope(query[None], torch.tensor([r]))[0]
    turned = position_rope.rope(query.expand(N, -1), torch.arange(N))
    while (turned @ key / math.sqrt(len(query))).softmax(dim=0)[r] < 0.5:
        key = 2 * key
    return key


@wrong(
    "ch14.peak",
    "You did not divide the scores by the root of d_head, so the softmax of the text is flatter than the one you looked at.",
    see="what-a-mean-of-cosines-says",
)
def undivided_scores(query, r, N, share):
    key = position_rope.rope(query[None], torch.tensor([r]))[0]
    turned = position_rope.rope(query.expand(N, -1), torch.arange(N))
    while (turned @ key).softmax(dim=0)[r] < share:
        key = 1.2 * key
    return key


equivalent("ch14.peak", "`key = 4 * key`", "any key that is long enough will do")
equivalent("ch14.peak", "`key = 3 * key`", "any key that is long enough will do")
equivalent("ch14.peak", "`if scores.softmax(dim=-1)[r] >= share:`", "the scores have one dimension")

# ---------------------------------------------------------------- ch14.guess

right("ch14.guess", "10")
right("ch14.guess", "everywhere")
wrong("ch14.guess", 10, "Set one of the three texts, word for word.", see="what-a-base-does-to-a-trained-model")
wrong("ch14.guess", "54", "The text that has 54 in it has 10 as well.", see="what-a-base-does-to-a-trained-model")
equivalent("ch14.wavelength", "`turns = math.floor(819…", "one token more or less has the same number of whole turns")
equivalent("ch14.lookalike", "`total = N`", "the same number is added for every distance")

"""The penguins' picture: one line for all of them, or one for each species."""

from course.reader.figures import BLANK, ink, styled

LOOKS = {  # color, marker, line style, y offset of the name (two lines nearly coincide, so their names are moved apart)
    "Adelie": ("#E69F00", "o", "-", 5),
    "Chinstrap": ("#CC79A7", "^", (0, (2, 2)), -12),
    "Gentoo": ("#0072B2", "s", "-", 0),
}


@styled(height=3.6)
def one_line_or_three(figure, depth, mass, species, alone, told):
    """Body mass (g) over bill depth (mm), arrays [n], with the masses that two linear models predict: `alone` from
    the depth only, and `told` from the depth and the species."""
    axes = figure.subplots()
    for name, (color, marker, dashes, up) in LOOKS.items():
        of = species == name
        axes.plot(depth[of], mass[of] / 1000, marker, color=color, markersize=3.5, alpha=0.45, markeredgewidth=0)
        rise = line(axes, name, depth[of], told[of], up, color=color, linestyle=dashes, linewidth=2.8)
    fall = line(axes, "all penguins", depth, alone, 0, color="black", linestyle="--")
    axes.set(xlabel="bill depth (mm)", ylabel="body mass (kg)", xlim=(depth.min() - 0.3, depth.max() + 1.7))
    axes.set_title(f"one line for all: {fall:+.0f} g per mm; one for each species: {rise:+.0f}")
    return (
        f"Body mass over bill depth. One line for all penguins has {fall:+.0f} g per mm. "
        "A model that is told the species "
        f"has three parallel lines of {rise:+.0f} g per mm, Gentoo's far above the others."
    )


def line(axes, name, depth, mass, up, color, **style):
    """Draw the line on which these points lie, between its end points, with its name. Return its slope in g per mm."""
    x0, y0 = min(zip(depth, mass, strict=True))
    x1, y1 = max(zip(depth, mass, strict=True))
    axes.plot([x0, x1], [y0 / 1000, y1 / 1000], color=color, **style)
    place = dict(xytext=(6, up), textcoords="offset points", va="center", bbox=BLANK)
    axes.annotate(name, (x1, y1 / 1000), color=ink(color), weight="bold", **place)
    return (y1 - y0) / (x1 - x0)

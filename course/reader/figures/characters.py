"""Figures of the net that writes text: the attention of a head, and the loss after each stage of its development."""

import numpy as np

from course.reader.figures.picture import GREY, HUES, ink, styled


@styled(height=3.8)
def attention(figure, shares, text):
    """The attention between the characters of a text: shares [t, t], a row for each character that takes."""
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0.0)
    names = [{" ": "␣", "\n": "↵"}.get(character, character) for character in text]
    places = range(len(names))
    axes.set_xticks(places, names, size=8)
    axes.set_yticks(places, names, size=8)
    ahead = float(np.abs(np.triu(shares, 1)).max())
    near = sum(float(np.trace(shares, -back)) for back in range(3)) / len(shares)
    title = "some look ahead" if ahead else f"{near:.0%} comes from the character itself and the two before"
    axes.set(xlabel="takes from", ylabel="character", title=title)
    return f"A grid of shares, {len(text)} by {len(text)}: {title}."


@styled()
def stages(figure, losses, chance, window=100):
    """The running means of {stage: losses}, and `chance`, the loss if all characters are equally likely."""
    axes = figure.subplots()
    ends = []
    axes.axhline(chance, color=GREY, linewidth=1)
    axes.text(20, chance - 0.03, "all characters equally likely", color=ink(GREY), va="top")
    for hue, (name, each) in zip(HUES, losses.items(), strict=False):
        smooth = np.convolve(each, np.ones(window) / window, "valid")
        steps = np.arange(len(smooth)) + window
        axes.plot(steps, smooth, color=hue)
        axes.text(steps[-1] + 20, smooth[-1], name, color=ink(hue), va="center")
        ends.append(f"{name} {smooth[-1]:.2f}")
    axes.set(xlabel="step", ylabel=f"loss (mean of {window} steps)", title="each idea brings the loss further down")
    return f"Losses over the steps, below {chance:.2f}. At the end: {', '.join(ends)}."

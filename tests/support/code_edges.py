"""Where a browser draws lines of code: used by the tests of what shows the levels, in a page and in JupyterLab."""

# Of each <pre> that is drawn, its lines: [the text of the line, its spaces in front, [where the part of it in each drawn
# line begins, what the part is, whether white space stands before it]].
DRAWN = """blocks => blocks.filter(block => block.getClientRects().length).map(block => {
    const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT), lines = [{text: "", parts: []}];
    let line = lines[0], bottom = null, space = false;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (let k = 0; k < node.data.length; k++) {
            const letter = node.data[k];
            line.text += letter;
            if (letter.trim()) {
                const place = document.createRange();
                place.setStart(node, k);
                place.setEnd(node, k + 1);
                const box = place.getBoundingClientRect();
                if (bottom === null || Math.abs(box.bottom - bottom) > 5)
                    line.parts.push({left: box.left, text: "", space: space});
                line.parts.at(-1).text += letter;
                bottom = box.bottom;
            } else if (line.parts.length) line.parts.at(-1).text += letter;
            space = !letter.trim();
            if (letter == "\\n") {
                line = {text: "", parts: []};
                lines.push(line);
                bottom = null;
            }
        }
    }
    return lines.filter(each => each.parts.length).map(each =>
        [each.text, each.text.length - each.text.trimStart().length, each.parts.map(part => [part.left, part.text, part.space])]);
})"""


def drawn(page, selector):
    """What DRAWN finds in these parts of a page."""
    return page.locator(selector).evaluate_all(DRAWN)


def cut_names(blocks):
    """The lines that are broken within a name or a number."""
    found = []
    for lines in blocks:
        for text, _, parts in lines:
            for (_, before, _), (_, after, spaced) in zip(parts, parts[1:], strict=False):
                if not spaced and joins(before[-1]) and joins(after[0]):
                    found.append((text, before, after))
    return found


def joins(letter):
    return letter.isalnum() or letter == "_"


def uneven_edges(blocks):
    """The lines of code that do not begin where their indentation says: in each block, each letter further to the right."""
    found = []
    for lines in blocks:
        begins = {}
        for text, indent, parts in lines:
            left = parts[0][0]
            if abs(begins.setdefault(indent, left) - left) > 0.5 or len(parts) != 1:
                found.append(text)
        lefts = [left for _, left in sorted(begins.items())]
        if lefts != sorted({*lefts}):
            found.append(f"indentations begin at {begins}")
    return found

"""Make the font of the Chinese figures, `course/reader/figures/fonts`: `python -m course.author.font FOLDER`.

FOLDER holds Noto Sans SC as npm's package @expo-google-fonts/noto-sans-sc has it, and its licence, which goes along. A
figure takes its texts from `po/zh_CN/shown.po`: the signs of the figures' entries are kept, and no others. It uses
fontTools, which comes with matplotlib.
"""

import io
import sys
from pathlib import Path

from babel.messages.pofile import read_po
from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from course.reader.figures.picture import FONTS
from course.reader.language import ROOT, SHOWN, po_path

SOURCES = {"regular": "400Regular/NotoSansSC_400Regular.ttf", "bold": "700Bold/NotoSansSC_700Bold.ttf"}
LICENCE = "LICENSE_FONT"
FIGURES = "course/reader/figures/"


def signs(root: Path = ROOT) -> set[str]:
    """Return the signs that the font must have: those of the translations of what figures show, without ASCII."""
    catalog = read_po(io.StringIO(po_path(root, "zh", SHOWN).read_text(encoding="utf-8")))
    texts = [each.string for each in catalog if any(place.startswith(FIGURES) for place, _ in each.locations)]
    return {sign for text in texts for sign in text if ord(sign) > 127}


def main(folder: Path) -> None:
    """Write both weights, with these signs alone, and the licence."""
    for weight, source in SOURCES.items():
        font = TTFont(folder / source)
        options = Options(layout_features=[], hinting=False, notdef_outline=True, name_IDs=[0, 1, 2, 4, 13, 14])
        subsetter = Subsetter(options)
        subsetter.populate(text="".join(sorted(signs())))
        subsetter.subset(font)
        font.save(FONTS[weight])
    licence = (folder / LICENCE).read_text(encoding="utf-8")
    FONTS["regular"].with_name("OFL.txt").write_text(licence, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

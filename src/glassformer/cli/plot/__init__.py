"""``glassformer plot``: pictures of the parts, of a training, and of one translation."""

from glassformer.cli.plot.options import OPTIONS, PlotOptions
from glassformer.files import check_output

__all__ = ["OPTIONS", "run"]


def run(options: PlotOptions) -> int:
    """Draw one picture and write it; the exit status is 0.

    Raises:
        UsageError: an option is out of range, or the file name ends in neither .png nor .svg.
        InputError: matplotlib is missing, or a file or sentence cannot be used.
    """
    from glassformer.cli.plot.draw import draw
    from glassformer.inspection.plots.canvas import picture_suffix, save

    picture_suffix(options.out)
    check_output("--out", options.out)
    save(draw(options), options.out)
    print(f"wrote {options.out}")
    return 0

"""What `export` says of the score map that it chose."""

from __future__ import annotations

from model_export.calibration_fit import CalibrationFigures, CalibrationFit


def reasons_of(fit: CalibrationFit, n_pairs: int, n_queries: int) -> list[str]:
    """Which map was chosen on how many pairs and queries, and why, in one line or two.

    Figures before are those without a map; log loss in nats, ECE over ten bins.
    """
    method, after = fit.calibration.method, fit.after
    given = f"{n_pairs} pairs of {n_queries} {'query' if n_queries == 1 else 'queries'}"
    if after.cross_validated is None or fit.before.cross_validated is None:
        change = _change(fit.before.in_sample, after.in_sample)
        return [f"{given}: too few queries to hold some out; {method} untested, in sample {change}"]
    if after == fit.before:
        held_out = fit.before.cross_validated
        return [
            f"{given}: no map is better than none on queries that it has not seen (log loss "
            f"{held_out.log_loss:.3f}, ECE {held_out.calibration_error:.3f})"
        ]
    change = _change(fit.before.cross_validated, after.cross_validated)
    lines = [f"{given}, held out in {fit.n_folds} folds: {change}"]
    if left := fit.left_for_shape:
        errors = ", ".join(
            f"{candidate.calibration.method} (ECE {candidate.in_sample.calibration_error:.3f} in "
            f"sample, by chance up to {candidate.chance_error:.3f})"
            for candidate in left
        )
        lines.append(f"as good in log loss and simpler, but of the wrong shape: {errors}")
    else:
        lines.append(f"{method} is the simplest that is within a standard error of the best")
    return lines


def _change(before: CalibrationFigures, after: CalibrationFigures) -> str:
    return (
        f"log loss {before.log_loss:.3f} -> {after.log_loss:.3f}, "
        f"ECE {before.calibration_error:.3f} -> {after.calibration_error:.3f}"
    )

#!/usr/bin/env python3
"""The planner against the trainer on this machine: seconds, bytes and verdicts of a whole sweep.

  bench/closed_loop.py [--sweep examples/sweep-small.json] [--folder build/closed-loop] [--machine machine.json]
                       [--only seconds,calibrated,bytes,verdicts,picks] [--json]
                       [--check]

  seconds   steps that `layline sweep` measured against what was predicted before (with --machine: from what `layline
            bench` measured; nothing is fitted to the runs)
  calibrated  with --machine: the same after a calibration by four of the runs, on the rest of them
  bytes     the dry run's peak of every stage of every layout against what the allocator counted, and the planner's
  verdicts  the same layouts under limits of memory between their peaks: who runs out of memory, as predicted
  picks     the layout that is predicted to be the fastest, and the best of the first three, against the sweep's best

What is measured is kept in --folder, so that a run that was ended goes on.
"""

import argparse
import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUM_LIMITS = 2


def note(row, name):
    found = re.search(rf"(?:^|; ){name}=([^;]*)", row["notes"])
    return found.group(1) if found else None


def rank_of(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    for place, index in enumerate(order):
        ranks[index] = place
    return ranks


def spearman(first, second):
    return statistics.correlation(rank_of(first), rank_of(second)) if len(first) > 2 else None


class Loop:
    def __init__(self, options):
        self.layline = options.layline
        self.folder = options.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sweep = json.loads(options.sweep.read_text())
        if options.machine:
            self.sweep["base"]["cluster"] = str(options.machine)

    def run(self, *arguments, codes=(0,)):
        result = subprocess.run([self.layline, *arguments], capture_output=True, text=True, check=False)
        if result.returncode not in codes:
            sys.exit(f"layline {' '.join(arguments)} ended with {result.returncode}: {result.stderr.strip()}")
        return result.stdout

    def rows(self, name, sweep):
        """Rows of a sweep, run where they are not there yet."""
        spec, runs = self.folder / f"{name}.json", self.folder / f"{name}.csv"
        spec.write_text(json.dumps(sweep))
        self.run("sweep", str(spec), "--output", str(runs))
        with runs.open() as file:
            return list(csv.DictReader(file))


def seconds(rows):
    timed = [row for row in rows if row["status"] == "ok" and row["step_time_s"]]
    real = [float(row["step_time_s"]) for row in timed]
    predicted = [float(row["predicted_step_seconds"]) for row in timed]
    errors = sorted(abs(p / r - 1) for p, r in zip(predicted, real))
    return {
        "num_runs": len(timed),
        "mean_abs_relative_error": statistics.mean(errors),
        "median_abs_relative_error": statistics.median(errors),
        "bias": statistics.median(p / r - 1 for p, r in zip(predicted, real)),
        "spearman": spearman(real, predicted),
    }


def write_rows(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def calibration_runs(rows):
    """Four that differ, chosen by what was predicted: the fastest on one rank and on the most ranks, there with
    recomputation; where tensor parallelism has the most collectives; and a pipeline."""
    most = max(int(row["gpus_total"]) for row in rows)
    predicted = lambda row: float(row["predicted_step_seconds"])
    plain = [row for row in rows if row["recompute"] == "none"]
    return [
        min((row for row in plain if row["gpus_total"] == "1"), key=predicted),
        max((row for row in plain if int(row["tp"]) == 2 and row["pp"] == "1" and row["gpus_total"] == "2"), key=predicted),
        min((row for row in plain if int(row["pp"]) == 2 and row["gpus_total"] == "2"), key=predicted),
        min((row for row in rows if row["recompute"] == "full" and int(row["gpus_total"]) == most), key=predicted),
    ]


def calibrated(loop, machine, rows):
    timed = [row for row in rows if row["status"] == "ok"]
    chosen = calibration_runs(timed)
    rest = [row for row in timed if row not in chosen]
    few, others, predictions = (loop.folder / f"{name}.csv" for name in ("four", "rest", "predicted"))
    write_rows(few, chosen)
    write_rows(others, rest)
    calibration = loop.folder / "calibration.json"
    loop.run("calibrate", str(few), "--engine", "layline", "--cluster", str(machine), "--output", str(calibration))
    loop.run("validate", str(others), "--cluster", str(machine), "--calibration", str(calibration),
             "--predictions", str(predictions))
    with predictions.open() as file:
        result = seconds(list(csv.DictReader(file)))
    return {"runs": [note(row, "layout") for row in chosen],
            "values": json.loads(calibration.read_text())["values"], **result}


def message_bytes(row):
    """Of a message between stages. One more of them is there while a neighbour is late to take it, which a dry run cannot
    know: on a busy machine the real peak may be higher by so much."""
    if int(row["pp"]) == 1:
        return 0
    tokens = int(row["micro_batch_size"]) * int(row["seq_len"])
    element = 4 if row["precision"] == "fp32" else 2
    return tokens * int(row["hidden"]) * element // (int(row["tp"]) if row["sp"] == "1" else 1)


def bytes_of_stages(loop, rows):
    """The dry run and the planner against the allocator, for every stage of every layout."""
    base = loop.folder / "run.json"
    base.write_text(json.dumps({**loop.sweep["base"], "steps": 2}))
    dry_errors, late_errors, planned_errors, worst = [], [], [], None
    for row in rows:
        if row["status"] != "ok":
            continue
        layout = note(row, "layout")
        dry = json.loads(loop.run("train", str(base), "--nproc", row["gpus_total"], "--set", f"layout={layout}",
                                  "--dry-run", "--json"))
        real = [int(number) for number in note(row, "peak_memory_bytes_by_stage").split(",")]
        for stage, found in zip(dry["stages"], real, strict=True):
            error = stage["peak_memory_bytes"] / found - 1
            dry_errors.append(abs(error))
            missing = max(0, found - stage["peak_memory_bytes"] - message_bytes(row))
            late_errors.append(error if error > 0 else missing / found)
            planned_errors.append(abs(stage["predicted_memory_bytes"] / found - 1))
            if abs(error) == max(dry_errors):
                worst = f"{layout}, stage {stage['stage']}"
    return {
        "num_stages": len(dry_errors),
        "dry_run_max_relative_error": max(dry_errors),
        "dry_run_worst": worst,
        "dry_run_max_relative_error_beyond_a_message": max(late_errors),
        "planner_max_relative_error": max(planned_errors),
    }


def verdicts(loop, rows):
    """The same layouts under limits that lie between their peaks."""
    peaks = sorted(max(int(n) for n in note(row, "peak_memory_bytes_by_stage").split(","))
                   for row in rows if row["status"] == "ok")
    right = judged = 0
    for i in range(NUM_LIMITS):
        place = (i + 1) * len(peaks) // (NUM_LIMITS + 1)
        limit = (peaks[place - 1] + peaks[place]) // 2
        sweep = {**loop.sweep, "memory_limit_bytes": limit, "base": {**loop.sweep["base"], "steps": 2}}
        sweep.pop("stop_when_slower_than_best_by", None)
        for row in loop.rows(f"limit-{i + 1}", sweep):
            if row["status"] not in ("ok", "oom"):
                continue
            judged += 1
            right += (row["predicted_verdict"] == "oom") == (row["status"] == "oom")
    return {"num_runs": judged, "accuracy": right / judged}


def picks(rows):
    """Per number of ranks: how much slower what is predicted to be fastest is than the best of the sweep."""
    results = []
    for ranks in sorted({int(row["gpus_total"]) for row in rows}):
        timed = [row for row in rows if row["status"] == "ok" and int(row["gpus_total"]) == ranks]
        best = min(float(row["step_time_s"]) for row in timed)
        first = sorted(timed, key=lambda row: float(row["predicted_step_seconds"]))[:3]
        results.append({
            "ranks": ranks,
            "regret_of_the_first_prediction": float(first[0]["step_time_s"]) / best - 1,
            "regret_of_the_first_three": min(float(row["step_time_s"]) for row in first) / best - 1,
        })
    return results


def failures(results):
    """What is not as it should be, a line each; None when all is. Times are not looked at: they are the machine's."""
    wrong = []
    if found := results.get("bytes"):
        if found["dry_run_max_relative_error_beyond_a_message"] > 0.001:
            wrong.append(f"the dry run is {found['dry_run_max_relative_error']:.2%} off ({found['dry_run_worst']})")
        if found["planner_max_relative_error"] > 0.01:
            wrong.append(f"the planner's bytes are {found['planner_max_relative_error']:.2%} off")
    if (found := results.get("verdicts")) and found["accuracy"] < 0.98:
        wrong.append(f"only {found['accuracy']:.0%} of the verdicts are right")
    return "\n".join(wrong) or None


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweep", type=pathlib.Path, default=ROOT / "examples" / "sweep-small.json")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "closed-loop")
    parser.add_argument("--layline", default=str(ROOT / "build" / "layline"))
    parser.add_argument("--machine", type=pathlib.Path, help="cluster file that `layline bench` wrote")
    parser.add_argument("--only", default="seconds,bytes,verdicts,picks", help="some of seconds,calibrated,bytes,verdicts,picks")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true",
                        help="end with 1 when the dry run is 0.1 % off in any stage, the planner 1 %, or 2 % of verdicts are wrong")
    return parser.parse_args()


def main():
    options = parse_options()
    loop = Loop(options)
    rows = loop.rows("all", loop.sweep)
    parts = {
        "seconds": lambda: seconds(rows),
        "calibrated": lambda: calibrated(loop, options.machine, rows),
        "bytes": lambda: bytes_of_stages(loop, rows),
        "verdicts": lambda: verdicts(loop, rows),
        "picks": lambda: picks(rows),
    }
    results = {}
    for name in options.only.split(","):
        results[name] = parts[name]()
        if not options.json:
            print(f"{name}: {json.dumps(results[name])}", flush=True)
    if options.json:
        print(json.dumps(results))
    if options.check:
        sys.exit(failures(results))


if __name__ == "__main__":
    main()

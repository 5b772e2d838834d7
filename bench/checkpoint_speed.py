#!/usr/bin/env python3
"""Checkpoints against the disk, and what saving costs a run.

  bench/checkpoint_speed.py [--layline build/layline] [--folder build/checkpoint-speed] [--steps 60] [--every 20] [--json]

  cost  seconds of training with a save every so many steps against the same run without, on the "small" shape (110M
        parameters, 2 x 1,024 tokens, bf16): median step and all in all, saves included
  save  bytes a second from the copy to the committed manifest, when nothing trains meanwhile (the save at the end),
        against `dd bs=8M conv=fdatasync` of as many bytes on the same disk
  load  bytes a second of resuming with a cold cache, against `dd bs=8M` reading as many bytes, cold too

Each is measured --repeats times in turns with dd; ratios are of medians.
"""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}


def seconds_in(text):
    found = re.search(r"([\d.,]+) (us|ms|s|min)\)?$", text.strip())
    return float(found.group(1).replace(",", "")) * UNITS[found.group(2)]


def drop_cache(paths):
    for path in paths:
        subprocess.run(["dd", f"of={path}", "oflag=nocache", "conv=notrunc,fdatasync", "count=0"], check=True,
                       capture_output=True)


def dd(arguments):
    start = time.monotonic()
    subprocess.run(["dd", "bs=8M", *arguments], check=True, capture_output=True)
    return time.monotonic() - start


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = options.folder
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        text = self.folder / "text"
        text.write_text("In the beginning God created the heaven and the earth. " * 40000)
        run = {
            "model": {"model_type": "llama", "hidden_size": 768, "intermediate_size": 2048, "num_attention_heads": 12,
                      "num_hidden_layers": 12, "vocab_size": 32000, "tie_word_embeddings": True},
            "sequence_length": 1024, "global_batch": 2, "steps": options.steps, "layout": "dp1 tp1 pp1 mb2",
            "data": {"train": str(text)},
        }
        self.run_file = self.folder / "run.json"
        self.run_file.write_text(json.dumps(run))

    def train(self, name, **keys):
        metrics = self.folder / f"{name}.jsonl"
        metrics.unlink(missing_ok=True)
        sets = [f"--set={key}={json.dumps(value)}" for key, value in keys.items()]
        start = time.monotonic()
        done = subprocess.run([self.options.layline, "train", self.run_file, f"--set=metrics={metrics}", *sets],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"layline train ended with {done.returncode}: {done.stderr.strip()}")
        rows = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
        return time.monotonic() - start, rows, done.stdout

    def files(self, directory):
        return [path for path in directory.rglob("*") if path.is_file() and path.suffix == ".safetensors"]

    def cost(self):
        saved = self.folder / "cost"
        _, plain, _ = self.train("plain")
        _, with_saves, text = self.train("saving", **{"checkpoint.directory": str(saved),
                                                     "checkpoint.every_steps": self.options.every})
        # The first step warms up; the last save has no step behind it.
        total = lambda rows: sum(row["step_seconds"] + row.get("checkpoint_seconds", 0) for row in rows[1:])
        held = [row["checkpoint_seconds"] for row in with_saves if "checkpoint_seconds" in row]
        size = sum(path.stat().st_size for path in self.files(saved / f"step-{self.options.steps:010}"))
        return {"seconds_without": total(plain), "seconds_with": total(with_saves),
                "share_of_throughput_lost": 1 - total(plain) / total(with_saves),
                "median_step_seconds": statistics.median(row["step_seconds"] for row in plain[1:]),
                "seconds_held_a_save": statistics.median(held), "bytes": size}

    def save_and_load(self):
        short = {"steps": 1, "sequence_length": 64, "global_batch": 1, "layout": "dp1 tp1 pp1 mb1"}  # what is saved is the same
        saves, writes, loads, reads = [], [], [], []
        target = self.folder / "dd"
        for repeat in range(self.options.repeats):
            saved = self.folder / f"saved-{repeat}"
            _, _, text = self.train(f"save-{repeat}", **{**short, "checkpoint.directory": str(saved)})
            saves.append(seconds_in(re.search(r"checkpoint of step 1: .* in (.*)", text).group(0)))
            files = self.files(saved)
            size = sum(path.stat().st_size for path in files)
            count = [f"count={size}", "iflag=count_bytes"]
            writes.append(dd(["if=/dev/zero", f"of={target}", *count, "conv=fdatasync"]))
            drop_cache([*files, target])
            _, _, text = self.train(f"load-{repeat}", **{**short, "checkpoint.directory": str(saved),
                                                        "checkpoint.resume": True})
            loads.append(seconds_in(re.search(r"going on from .*\(read in (.*)\)", text).group(1)))
            drop_cache([*files, target])
            reads.append(dd([f"if={target}", "of=/dev/null"]))
            target.unlink()
            shutil.rmtree(saved)
        middle = statistics.median
        return {"bytes": size, "save_bytes_per_second": size / middle(saves), "dd_write_bytes_per_second": size / middle(writes),
                "save_ratio": middle(writes) / middle(saves), "load_bytes_per_second": size / middle(loads),
                "dd_read_bytes_per_second": size / middle(reads), "load_ratio": middle(reads) / middle(loads)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layline", default=ROOT / "build" / "layline", type=pathlib.Path)
    parser.add_argument("--folder", default=ROOT / "build" / "checkpoint-speed", type=pathlib.Path)
    parser.add_argument("--steps", default=60, type=int)
    parser.add_argument("--every", default=20, type=int)
    parser.add_argument("--repeats", default=5, type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    bench = Bench(options)
    disk, cost = bench.save_and_load(), bench.cost()
    if options.json:
        print(json.dumps({"schema_version": 1, "disk": disk, "cost": cost}))
        return
    mb = lambda key: f"{disk[key] / 1e6:,.0f} MB/s"
    print(f"save  {mb('save_bytes_per_second')}, dd {mb('dd_write_bytes_per_second')}: {disk['save_ratio']:.0%}")
    print(f"load  {mb('load_bytes_per_second')}, dd {mb('dd_read_bytes_per_second')}: {disk['load_ratio']:.0%}")
    print(f"cost  {cost['share_of_throughput_lost']:.1%} of throughput at a save of {cost['bytes'] / 1e9:.2f} GB every "
          f"{options.every} steps of {cost['median_step_seconds']:.2f} s; a save holds training up for "
          f"{cost['seconds_held_a_save']:.2f} s")


main()

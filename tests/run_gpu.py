#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the CUDA tests of a build on this machine's device, and again under compute-sanitizer.

    tests/run_gpu.py build/tests --report bench/results/gpu-tests.json

Every test program in the folder that has tests named after CUDA is run with them. The report holds
commit, device, driver, and counts by program; the exit status is 0 if all passed and the sanitizer
found nothing.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

# Central differences launch thousands of kernels that other tests launch too.
SANITIZED = "*Cuda*-*CentralDifferences*:*TwoToThe31*"


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def cuda_programs(folder):
    for path in sorted(pathlib.Path(folder).glob("*_test")):
        if not os.access(path, os.X_OK) or not path.is_file():
            continue
        listing = output_of(str(path), "--gtest_list_tests", "--gtest_filter=*Cuda*")
        if re.search(r"^  \S", listing, re.M):
            yield path


def run(path, gtest_filter, prefix=(), timeout=900, **environment):
    command = [*prefix, str(path), f"--gtest_filter={gtest_filter}"]
    started = time.time()
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              timeout=timeout, check=False, env={**os.environ, **environment})
        text, status = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired as e:
        text, status = (e.stdout or b"").decode(errors="replace"), "timeout"
    count = lambda pattern: sum(int(n) for n in re.findall(pattern, text))
    row = {
        "program": path.name,
        "passed": count(r"\[  PASSED  \] (\d+) test"),
        "skipped": count(r"\[  SKIPPED \] (\d+) test"),
        "failed": count(r"\[  FAILED  \] (\d+) test"),
        "status": status,
        "seconds": round(time.time() - started, 1),
    }
    return row, text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="build folder of the test programs")
    parser.add_argument("--report", help="JSON file to write")
    parser.add_argument("--log", help="file for the output of what failed")
    parser.add_argument("--commit", default=output_of("git", "rev-parse", "--short", "HEAD"))
    parser.add_argument("--tools", default="memcheck,racecheck",
                        help="of compute-sanitizer, by commas; empty for none")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--timeout", type=int, default=900, help="seconds a program may take")
    args = parser.parse_args()

    device = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    if not device:
        print("run_gpu.py: no NVIDIA device on this machine", file=sys.stderr)
        return 2
    name, driver = [part.strip() for part in device.splitlines()[0].split(",")]
    report = {"commit": args.commit, "device": name, "driver": driver, "tests": [],
              "sanitizer": []}
    log = open(args.log, "w") if args.log else None
    good = True

    def keep():  # after every program, so that an interrupted run leaves what it had
        if args.report:
            with open(args.report, "w") as f:
                json.dump(report, f, indent=1)
                f.write("\n")

    programs = [p for p in cuda_programs(args.folder) if args.only in p.name]
    for path in programs:
        row, text = run(path, "*Cuda*", timeout=args.timeout)
        report["tests"].append(row)
        keep()
        ok = row["status"] == 0
        good &= ok
        print(f"{'ok    ' if ok else 'FAILED'} {path.name}: {row['passed']} passed, "
              f"{row['skipped']} skipped, {row['failed']} failed, {row['seconds']} s", flush=True)
        if not ok and log:
            log.write(f"==== {path.name}\n{text}\n")
            log.flush()
    tools = [t for t in args.tools.split(",") if t]
    if tools and not shutil.which("compute-sanitizer"):
        print("run_gpu.py: compute-sanitizer not found, left out", file=sys.stderr)
        tools = []
    for tool in tools:
        for path in programs:
            prefix = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9"]
            if tool == "memcheck":  # failed calls are tests' own: out of memory is an exception
                prefix += ["--report-api-errors", "no"]
            # Times under a sanitizer choose no engine.
            row, text = run(path, SANITIZED, prefix, timeout=args.timeout, GABLE_CONV_MEASURE="0")
            summary = re.findall(r"=+ (?:ERROR|RACECHECK) SUMMARY: (.*)", text)
            row.update(tool=tool, summary=summary[-1] if summary else "no summary")
            report["sanitizer"].append(row)
            keep()
            ok = row["status"] == 0
            good &= ok
            print(f"{'ok    ' if ok else 'FAILED'} {tool} {path.name}: {row['summary']}, "
                  f"{row['passed']} passed, {row['seconds']} s", flush=True)
            if not ok and log:
                log.write(f"==== {tool} {path.name}\n{text}\n")
                log.flush()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""minutes: what 14 days of family host take, of 30 containers and 500 processes.

An hour is generated (makehost), archived, and then its minutes alone are kept. To reach, with the days of ten seconds that sonded keeps:
80 MB. Exit 1 where that is missed.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("B", os.path.join(ROOT, "build"))
OLD = "20200101T000000Z-0001.db"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--minutes", type=int, default=60, help="how long the generated hour is")
    p.add_argument("--fine-days", type=float, default=1, help="so many days have ten seconds")
    a = p.parse_args()
    hours = a.minutes / 60
    with tempfile.TemporaryDirectory() as store:
        made = os.path.join(BUILD, "tests", "makehost")
        subprocess.run([made, store, str(a.minutes)], check=True)
        (path,) = glob.glob(f"{store}/*.db")
        rows = os.path.getsize(path)
        os.rename(path, f"{store}/{OLD}")
        with tempfile.TemporaryDirectory() as other:  # the newest is being written, for all that is known
            subprocess.run([made, other, "1"], check=True)
            (newest,) = glob.glob(f"{other}/*.db")
            os.rename(newest, f"{store}/{os.path.basename(newest)}")
        seal = [os.path.join(BUILD, "bin", "sonde-seal"), "--store", store, "--quiet"]
        subprocess.run(seal, check=True)
        fine = os.path.getsize(f"{store}/{OLD}")
        before = time.process_time(), os.times().children_user
        subprocess.run([*seal, "--fine", "1d"], check=True)
        cpu = os.times().children_user - before[1]
        minutes = os.path.getsize(f"{store}/{OLD}")
    day = [24 * n / hours / 1e6 for n in (rows, fine, minutes)]
    total = a.fine_days * day[1] + (14 - a.fine_days) * day[2]
    print(f"a day: {day[0]:.1f} MB of rows, archived {day[1]:.2f} MB, as minutes {day[2]:.2f} MB; to make the minutes of an hour: {cpu / hours:.2f} s")
    print(f"14 days: {14 * day[1]:.0f} MB in ten seconds; {total:.0f} MB with {a.fine_days:g} days of them (80)")
    return 0 if total <= 80 else 1


if __name__ == "__main__":
    sys.exit(main())

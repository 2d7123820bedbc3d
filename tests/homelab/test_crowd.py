# SPDX-License-Identifier: Apache-2.0
"""No question is quadratic in processes or containers: ten thousand of the one, a hundred instances of the other (crowd.py)."""
import crowd
import questions


def test_every_question_about_ten_thousand_processes_takes_two_seconds_of_cpu_at_most(tmp_path):
    crowd.make(str(tmp_path), 10000)
    assert crowd.judge(questions.ask_all(str(tmp_path), crowd.more_questions), 2) == []

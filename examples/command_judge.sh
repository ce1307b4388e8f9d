#!/bin/sh
# A judge in shell: the option with the shorter text wins. Needs jq.
#
#   roundel judge slogans.db slogans --command examples/command_judge.sh
#
# One line of JSON comes in for each duel; the same line goes out with "verdict" added. Contents are data: they reach
# jq on its standard input and are never part of a command.
exec jq --compact-output --unbuffered '
  (.first.text | length) as $first | (.second.text | length) as $second
  | .verdict = if $first < $second then "first" elif $first > $second then "second" else "tie" end'

#!/bin/bash
# Speaks Claude Code's wire like the fake of the tests, but starts and exits within milliseconds: what a harness itself
# takes is taken off the figure, and noise there would be noise in what is left. Its words are the time of writing them;
# when it began and when it had said its last word it leaves in a file.
born=$EPOCHREALTIME
exec {nothing}<> <(:)

read -r line
key=${line#*'"request_id":"'}
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "${key%%\"*}"
read -r line
printf '{"type":"system","subtype":"init","session_id":"%s","mcp_servers":[],"tools":[]}\n' "$$-$born"
for number in {1..20}; do
  printf '{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"%s "}}}\n' "$EPOCHREALTIME"
  read -rt 0.005 -u "$nothing"
done
printf '{"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"stamped"}]}}\n'
printf '%s %s\n' "$born" "$EPOCHREALTIME" > stamps
printf '{"type":"result","subtype":"success","is_error":false,"result":"","usage":{"input_tokens":1,"output_tokens":1},"total_cost_usd":0.25}\n'
while read -r line; do :; done

# SPDX-License-Identifier: Apache-2.0
# bash completion for sonde: `sonde completion words` says what fits. To load it: source <(sonde completion bash)
_sonde()
{
	local word line
	COMPREPLY=()
	word=${COMP_WORDS[COMP_CWORD]}
	while IFS=$'\t' read -r line _; do
		if [ "$line" = "<file>" ]; then
			compopt -o default 2>/dev/null
			return
		fi
		COMPREPLY+=("$(printf '%q' "$line")")
	done < <("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null)
}
complete -F _sonde sonde

# SPDX-License-Identifier: Apache-2.0
# bash completion for sonde: `sonde completion words` prints the words that fit. To load it: source <(sonde completion bash)
_sonde()
{
	local word line last cut=
	local -a before=("${COMP_WORDS[@]:1:COMP_CWORD-1}")
	COMPREPLY=()
	word=${COMP_WORDS[COMP_CWORD]}
	line=${COMP_LINE:0:COMP_POINT}
	last=${line##*[[:space:]]}
	if [[ $last == *:* && $last == *"$word" ]]; then # bash splits std::sort into three words, and replaces only the last
		read -ra before <<< "${line%"$last"}"
		before=("${before[@]:1}")
		word=$last
		cut=${last%"${last##*:}"}
	fi
	while IFS=$'\t' read -r line _; do
		if [ "$line" = "<file>" ]; then
			compopt -o default 2>/dev/null
			return
		fi
		COMPREPLY+=("$(printf '%q' "${line#"$cut"}")")
	done < <("${COMP_WORDS[0]}" completion words -- "${before[@]}" "$word" 2>/dev/null)
}
complete -F _sonde sonde

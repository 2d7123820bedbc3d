#compdef sonde
# SPDX-License-Identifier: Apache-2.0
# zsh completion for sonde: `sonde completion words` prints the words that fit. To load it: source <(sonde completion zsh)
_sonde()
{
	local -a values
	local line word help
	while IFS=$'\t' read -r word help; do
		if [[ $word = "<file>" ]]; then
			_files
			return
		fi
		values+=("${word//:/\\:}${help:+:$help}")
	done < <(${words[1]} completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
	(( ${#values} )) && _describe -t sonde sonde values
}
if [[ ${funcstack[1]} = _sonde ]]; then
	_sonde "$@"
else
	compdef _sonde sonde
fi

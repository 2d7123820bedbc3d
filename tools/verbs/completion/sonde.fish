# SPDX-License-Identifier: Apache-2.0
# fish completion for sonde: `sonde completion words` prints the words that fit. To load it: sonde completion fish | source
function __sonde_words
    set -l typed (commandline -opc) (commandline -ct)
    set -l found ($typed[1] completion words -- $typed[2..-1] 2>/dev/null)
    if test "$found[1]" = "<file>"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete -c sonde -f -a '(__sonde_words)'

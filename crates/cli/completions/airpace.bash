# bash completion for airpace: the program itself is asked what may follow.
#
# bash takes `pbe@paper`, `--set=key` and `a:b=c` apart; here they are put together again before the program is asked, and of its
# answers only what bash would replace is given back. Works with and without the package bash-completion.
_airpace() {
    local line=${COMP_LINE:0:COMP_POINT} words=() index word rest
    for ((index = 0; index <= COMP_CWORD; index++)); do
        rest=${line#"${line%%[![:space:]]*}"}
        word=${COMP_WORDS[index]}
        [[ $rest == "$word"* ]] || word=$rest
        if [[ $rest != "$line" || $index -eq 0 ]]; then
            words+=("$word")
        else
            words[${#words[@]} - 1]+=$word
        fi
        line=${rest#"$word"}
    done
    local current=${words[${#words[@]} - 1]}
    local kept=${current%"$2"} answer program=$1
    command -v -- "$program" >/dev/null || program=airpace
    COMPREPLY=()
    while IFS=$'\t' read -r answer _; do
        answer=${answer#"$kept"}
        # A folder, and what is followed by more of the same word, is not ended by a space.
        [[ $answer == *[/=:,@] ]] || answer+=' '
        COMPREPLY+=("$answer")
    done < <("$program" complete -- "${words[@]:1}" 2>/dev/null)
}
complete -o nospace -o nosort -F _airpace airpace

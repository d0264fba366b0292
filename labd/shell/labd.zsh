#compdef labd
# Completion of labd for zsh. It asks labd itself at each Tab, so that it knows what this version and this lab have.
_labd() {
    local program=${(Q)words[1]/#\~/$HOME} value
    local -a reply shown
    reply=("${(@f)$("$program" __complete zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
    for value in "${(@)reply[2,-1]}"; do
        [[ -n $value ]] && shown+=("${${value%%$'\t'*}//:/\\:}:${value#*$'\t'}")
    done
    local found=1
    if (( $#shown )); then
        _describe -V labd shown && found=0
    fi
    if [[ $reply[1] == files ]]; then
        [[ $PREFIX == --*=* ]] && compset -P 1 '*='
        _files && found=0
    fi
    return found
}
if [[ $funcstack[1] == _labd ]]; then # loaded from $fpath
    _labd "$@"
elif (( $+functions[compdef] )); then
    compdef _labd labd
else
    print -u2 'labd: its completion needs zsh'\''s, so put this before it: autoload -Uz compinit && compinit'
fi

# Completion of labd for bash. It asks labd itself at each Tab, so that it knows what this version and this lab have.
_labd() {
    local program=${COMP_WORDS[0]/#\~/$HOME} left=${COMP_LINE:0:COMP_POINT} words=() word glued=0 count=0 at

    # bash splits words at = and :, which are within ours: join what stands together on the line.
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        ((at == COMP_CWORD)) && word=${left#"${left%%[![:space:]]*}"}
        [[ $left == [[:space:]]* ]] && glued=0
        left=${left#"${left%%[![:space:]]*}"}
        left=${left#"$word"}
        if ((glued)); then
            words[count - 1]+=$word
        else
            words[count++]=$word
        fi
        glued=1
    done

    local current=${words[count - 1]} reply mode='' value
    reply=$("$program" __complete bash "${words[@]:1}" 2>/dev/null </dev/null)
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        if [[ -z $mode ]]; then
            mode=$value
        else
            printf -v value %q "$value"
            COMPREPLY+=("$value")
        fi
    done <<<"$reply"

    if [[ $mode == files ]]; then
        if ((${#COMPREPLY[@]} == 0)); then
            compopt -o default 2>/dev/null # readline's own, which knows quotes and ~
        else
            compopt -o filenames 2>/dev/null
            while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "$current")
        fi
    fi

    # What is replaced on the line is only what stands behind the last = or : that bash splits at.
    local cut=''
    [[ $current == *=* && $COMP_WORDBREAKS == *=* ]] && cut=${current%"${current##*=}"}
    [[ ${current#"$cut"} == *:* && $COMP_WORDBREAKS == *:* ]] && cut=${current%"${current##*:}"}
    [[ -n $cut ]] && for at in "${!COMPREPLY[@]}"; do COMPREPLY[at]=${COMPREPLY[at]#"$cut"}; done
    return 0
}
complete -F _labd labd

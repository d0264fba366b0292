# Completion of labd for fish. It asks labd itself at each Tab, so that it knows what this version and this lab have.
function __labd_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~' $HOME -- $words[1])
    set -l reply ($program __complete fish $words[2..-1] "$current" 2>/dev/null </dev/null)
    set -l mode $reply[1]
    set -e reply[1]
    if test (count $reply) -gt 0
        printf '%s\n' $reply
    end
    if test "$mode" = files
        set -l before (string match -r -- '^--[^=]*=' $current)
        set -l part (string replace -r -- '^--[^=]*=' '' $current)
        for path in (__fish_complete_path "$part")
            echo "$before$path"
        end
    end
end
complete -c labd -f -a '(__labd_complete)'

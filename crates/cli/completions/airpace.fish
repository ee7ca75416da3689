# fish completion for airpace: the program itself is asked what may follow.
function __airpace_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    $words[1] complete -- $words[2..-1] (commandline --current-token --cut-at-cursor) 2>/dev/null
end
complete --command airpace --keep-order --no-files --arguments '(__airpace_complete)'

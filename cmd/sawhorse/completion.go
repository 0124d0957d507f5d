package main

import (
	"context"
	"fmt"
	"strings"
)

var shells = []string{"bash", "zsh", "fish"}

func runCompletion(_ context.Context, use string, args []string) error {
	if len(args) != 1 {
		return usage{use: use}
	}
	all := append(commands(), command{name: "help", what: "tell more about a command"})
	for _, c := range commands() {
		all[len(all)-1].words = append(all[len(all)-1].words, c.name)
	}
	switch args[0] {
	case "bash":
		completeBash(all)
	case "zsh":
		completeZsh(all)
	case "fish":
		completeFish(all)
	default:
		return usage{use, fmt.Sprintf("there is no completion for %q", args[0])}
	}
	return nil
}

// follow returns the words that may follow a command.
func (c command) follow() string { return strings.Join(append(c.flags, c.words...), " ") }

func completeBash(all []command) {
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	fmt.Printf(`_sawhorse() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W %q -- "$word"))
    return
  fi
  case "${COMP_WORDS[1]} $before" in
`, strings.Join(names, " "))
	for _, c := range all {
		if len(c.formats) > 0 {
			fmt.Printf("    \"%s -o\") COMPREPLY=($(compgen -W %q -- \"$word\")); return ;;\n", c.name, strings.Join(c.formats, " "))
		}
	}
	fmt.Print("  esac\n  case \"${COMP_WORDS[1]}\" in\n")
	for _, c := range all {
		files := ""
		if c.files {
			files = " -f"
		}
		if words := c.follow(); words != "" {
			fmt.Printf("    %s) COMPREPLY=($(compgen%s -W %q -- \"$word\")) ;;\n", c.name, files, words)
		}
	}
	fmt.Print("  esac\n}\ncomplete -o filenames -F _sawhorse sawhorse\n")
}

// completeZsh prints a script that works both sourced and as a file _sawhorse in fpath.
func completeZsh(all []command) {
	fmt.Print("#compdef sawhorse\n_sawhorse() {\n  if (( CURRENT == 2 )); then\n    local -a commands=(\n")
	for _, c := range all {
		fmt.Printf("      %q\n", c.name+":"+c.what)
	}
	fmt.Print("    )\n    _describe command commands\n    return\n  fi\n  case \"${words[2]} ${words[CURRENT-1]}\" in\n")
	for _, c := range all {
		if len(c.formats) > 0 {
			fmt.Printf("    \"%s -o\") compadd -- %s; return ;;\n", c.name, strings.Join(c.formats, " "))
		}
	}
	fmt.Print("  esac\n  case \"${words[2]}\" in\n")
	for _, c := range all {
		files := ""
		if c.files {
			files = "; _files"
		}
		if words := c.follow(); words != "" {
			fmt.Printf("    %s) compadd -- %s%s ;;\n", c.name, words, files)
		}
	}
	fmt.Print("  esac\n}\nif [ \"$funcstack[1]\" = _sawhorse ]; then _sawhorse; else compdef _sawhorse sawhorse; fi\n")
}

func completeFish(all []command) {
	for _, c := range all {
		fmt.Printf("complete -c sawhorse -f -n __fish_use_subcommand -a %s -d %q\n", c.name, c.what)
		on := fmt.Sprintf("complete -c sawhorse -n '__fish_seen_subcommand_from %s'", c.name)
		if !c.files {
			fmt.Println(on, "-f")
		}
		if len(c.words) > 0 {
			fmt.Printf("%s -a %q\n", on, strings.Join(c.words, " "))
		}
		for _, f := range c.flags {
			long, is := strings.CutPrefix(f, "--")
			switch {
			case f == "-o":
				fmt.Printf("%s -s o -x -a %q\n", on, strings.Join(c.formats, " "))
			case is && f != "--batch":
				fmt.Printf("%s -l %s -x\n", on, long)
			case is:
				fmt.Printf("%s -l %s\n", on, long)
			}
		}
	}
}

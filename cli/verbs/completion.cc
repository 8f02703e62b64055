// Shell completion, made from the program's own list of verbs and flags, so that it cannot fall behind.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/verbs/verbs.h"

namespace siding::cli {
namespace {

std::vector<std::string> VerbsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> FlagsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // for packagers
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "case" lines: verb) words="flags and verbs below it" ;;
std::string Cases(const CLI::App& app) {
  std::string out;
  for (const std::string& name : VerbsOf(app)) {
    const CLI::App* verb = app.get_subcommand(name);
    std::vector<std::string> words = FlagsOf(*verb);
    const std::vector<std::string> below = VerbsOf(*verb);
    words.insert(words.end(), below.begin(), below.end());
    absl::StrAppend(&out, "    ", name, ") words=\"", absl::StrJoin(words, " "), "\" ;;\n");
  }
  return out;
}

std::string Bash(const CLI::App& app) {
  return absl::StrCat(R"(# bash completion for sidingctl; use: source <(sidingctl completion bash)
_sidingctl() {
  local word verb="" words i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${COMP_WORDS[i]}" in -*) ;; *) verb=${COMP_WORDS[i]}; break ;; esac
  done
  word=${COMP_WORDS[COMP_CWORD]}
  case "$verb" in
    "") words=")",
                      absl::StrJoin(VerbsOf(app), " "), " ", absl::StrJoin(FlagsOf(app), " "), "\" ;;\n",
                      Cases(app),
                      R"(    *) words="" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _sidingctl sidingctl
)");
}

std::string Zsh(const CLI::App& app) {
  return absl::StrCat(
      "# zsh completion for sidingctl; use: source <(sidingctl completion zsh)\n"
      "autoload -U +X bashcompinit && bashcompinit\n",
      Bash(app));
}

std::string Fish(const CLI::App& app) {
  std::string out = "# fish completion for sidingctl; use: sidingctl completion fish | source\n";
  for (const std::string& name : VerbsOf(app)) {
    const CLI::App* verb = app.get_subcommand(name);
    absl::StrAppend(&out, "complete -c sidingctl -n __fish_use_subcommand -f -a ", name, " -d '",
                    verb->get_description(), "'\n");
    for (const std::string& flag : FlagsOf(*verb)) {
      absl::StrAppend(&out, "complete -c sidingctl -n '__fish_seen_subcommand_from ", name, "' -l ",
                      flag.substr(2), "\n");
    }
  }
  return out;
}

}  // namespace

void AddCompletion(CLI::App& app, Session& session) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "a completion script for your shell");
  completion->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer("example: source <(sidingctl completion bash)");
  completion->callback([&app, &session, shell] {
    session.run = [&app, shell]() -> absl::StatusOr<int> {
      std::cout << (*shell == "bash" ? Bash(app) : *shell == "zsh" ? Zsh(app) : Fish(app));
      return 0;
    };
  });
}

}  // namespace siding::cli

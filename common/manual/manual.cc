#include "common/manual/manual.h"

#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace siding {
namespace {

// A point or an apostrophe at the beginning of a line would be a command of roff's.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const auto line : absl::StrSplit(text, '\n')) {
    const std::string one(line);
    if (!escaped.empty()) escaped += "\n.br\n";
    if (one.starts_with('.') || one.starts_with('\'')) escaped += "\\&";
    escaped += absl::StrReplaceAll(one, {{"\\", "\\e"}, {"-", "\\-"}});
  }
  return escaped;
}

std::string Bold(const std::string& text) { return absl::StrCat("\\fB", Escaped(text), "\\fR"); }
std::string Italic(const std::string& text) { return absl::StrCat("\\fI", Escaped(text), "\\fR"); }

bool IsListed(const CLI::Option& option) { return !option.get_group().empty(); }

std::string ValueOf(const CLI::Option& option) {
  return option.get_items_expected_max() == 0 ? "" : absl::AsciiStrToUpper(option.get_type_name());
}

std::string NamesOf(const CLI::Option& option) {
  if (option.get_positional()) return Italic(option.get_name(true));
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back(Bold("-" + name));
  for (const std::string& name : option.get_lnames()) names.push_back(Bold("--" + name));
  const std::string value = ValueOf(option);
  return absl::StrCat(absl::StrJoin(names, ", "), value.empty() ? "" : " " + Italic(value));
}

std::string TextOf(const CLI::Option& option) {
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) absl::StrAppend(&text, " (default: ", option.get_default_str(), ")");
  if (!option.get_envname().empty())
    absl::StrAppend(&text, " (in the environment: ", option.get_envname(), ")");
  return Escaped(text);
}

std::vector<const CLI::App*> VerbsOf(const CLI::App& app) {
  std::vector<const CLI::App*> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) verbs.push_back(verb);
  }
  return verbs;
}

std::string Synopsis(const CLI::App& app, const std::string& name) {
  std::string text = Bold(name);
  const std::vector<const CLI::App*> verbs = VerbsOf(app);
  absl::StrAppend(&text, " [", Italic("OPTION"), "]...");
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || !IsListed(*option)) continue;
    const bool many = option->get_items_expected_max() > 1;
    const std::string its = absl::StrCat(Italic(option->get_name(true)), many ? "..." : "");
    absl::StrAppend(&text, " ", option->get_required() ? its : "[" + its + "]");
  }
  if (!verbs.empty()) absl::StrAppend(&text, " ", Italic("VERB"), " ...");
  return text;
}

void AppendOptions(const CLI::App& app, std::string& page) {
  for (const CLI::Option* option : app.get_options()) {
    if (!IsListed(*option)) continue;
    absl::StrAppend(&page, ".TP\n", NamesOf(*option), "\n", TextOf(*option), "\n");
  }
}

void AppendVerbs(const CLI::App& app, const std::string& before, std::string& page) {
  for (const CLI::App* verb : VerbsOf(app)) {
    const std::string name = absl::StrCat(before, " ", verb->get_name());
    absl::StrAppend(&page, ".SS ", Escaped(name), "\n", Synopsis(*verb, name), "\n.PP\n",
                    Escaped(verb->get_description()), "\n");
    AppendOptions(*verb, page);
    AppendVerbs(*verb, name, page);
  }
}

}  // namespace

std::string ToRoff(const CLI::App& app, const ManualPage& about) {
  std::string page =
      absl::StrCat(".TH ", absl::AsciiStrToUpper(about.name), " ", about.section, " \"\" \"siding ",
                   about.version, "\" \"siding\"\n.SH NAME\n", Escaped(about.name), " \\- ");
  const std::string description = app.get_description();
  absl::StrAppend(&page, Escaped(description), "\n.SH SYNOPSIS\n", Synopsis(app, about.name),
                  "\n.SH OPTIONS\n");
  AppendOptions(app, page);
  if (!VerbsOf(app).empty()) {
    absl::StrAppend(&page, ".SH VERBS\n");
    AppendVerbs(app, about.name, page);
  }
  if (!app.get_footer().empty()) absl::StrAppend(&page, ".SH NOTES\n", Escaped(app.get_footer()), "\n");
  absl::StrAppend(&page, ".SH SEE ALSO\n", Escaped(about.see), "\n");
  return page;
}

void AddManual(CLI::App& app, ManualPage page) {
  const auto print = [&app, page = std::move(page)] {
    std::cout << ToRoff(app, page);
    throw CLI::Success();
  };
  // While the words are read: what is required is not missed.
  app.add_flag_callback("--man", print)->trigger_on_parse()->group("");
}

}  // namespace siding

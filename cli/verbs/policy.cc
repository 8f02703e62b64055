// policy check: reads a policy file as the controller would; needs no controller. policy show and reload:
// what is in force there.
#include <yaml-cpp/yaml.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/render.h"
#include "cli/verbs/verbs.h"
#include "common/status.h"
#include "policy/policy_file.h"

namespace siding::cli {
namespace {

absl::StatusOr<int> Check(const Session& session, const std::string& path) {
  const auto file = LoadPolicyFile(path);
  if (session.json) {
    nlohmann::json answer = {{"good", file.ok()}};
    if (!file.ok()) answer["problem"] = std::string(file.status().message());
    if (file.ok()) answer["warnings"] = file->warnings;
    std::cout << answer.dump(2) << "\n";
    return file.ok() ? 0 : 1;
  }
  if (!file.ok()) {
    std::cerr << std::string(file.status().message()) << "\n";
    return 1;
  }
  std::cout << Describe(file->policy);
  for (const std::string& warning : file->warnings) std::cout << "warning: " << warning << "\n";
  return 0;
}

nlohmann::ordered_json ToJson(const YAML::Node& node) {
  nlohmann::ordered_json json;
  if (node.IsMap()) {
    json = nlohmann::ordered_json::object();
    for (const auto& entry : node) json[entry.first.as<std::string>()] = ToJson(entry.second);
  } else if (node.IsSequence()) {
    json = nlohmann::ordered_json::array();
    for (const YAML::Node& item : node) json.push_back(ToJson(item));
  } else {
    const bool quoted = node.Tag() == "!";
    bool truth = false;
    double number = 0;
    json = node.as<std::string>();
    if (!quoted && YAML::convert<bool>::decode(node, truth)) json = truth;
    if (!quoted && YAML::convert<double>::decode(node, number))
      json = nlohmann::ordered_json::parse(node.Scalar());
  }
  return json;
}

// As for all verbs, but the policy is an object, not text in YAML.
absl::StatusOr<std::string> InForceAsJson(const v1::PolicyInForce& policy) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(Session::ToJson(policy));
  json.erase("yaml");
  try {
    json["policy"] = ToJson(YAML::Load(policy.yaml()));
  } catch (const YAML::Exception& error) {
    return absl::InternalError(absl::StrCat("the controller's answer is no YAML: ", error.what()));
  }
  return json.dump() + "\n";
}

// A policy file again, with what else there is to say as comments.
std::string InForceAsText(const v1::PolicyInForce& policy, Time now) {
  const Time loaded = FromMicros(policy.loaded_us());
  std::string text = policy.file().empty()
                         ? "# the defaults: the controller was started without a policy file\n"
                         : absl::StrCat("# ", policy.file(), ", loaded ", FormatTime(loaded), " (",
                                        Ago(now - loaded), ")\n");
  if (!policy.problem().empty())
    absl::StrAppend(&text, "# not in force as it is now: ", policy.problem(), "\n");
  return text + policy.yaml();
}

absl::StatusOr<int> Show(Session& session) {
  SIDING_ASSIGN_OR_RETURN(const v1::PolicyInForce policy, session.client().Policy());
  if (!session.json) {
    std::cout << InForceAsText(policy, session.style().now);
    return 0;
  }
  SIDING_ASSIGN_OR_RETURN(const std::string json, InForceAsJson(policy));
  std::cout << json;
  return 0;
}

absl::StatusOr<int> Reload(Session& session) {
  SIDING_ASSIGN_OR_RETURN(const v1::PolicyReloaded reloaded, session.client().ReloadPolicy());
  std::string text = absl::StrCat(reloaded.file(), " is in force; ",
                                  reloaded.changes().empty() ? "nothing has changed\n" : "it changes\n");
  for (const std::string& change : reloaded.changes()) absl::StrAppend(&text, change, "\n");
  for (const std::string& warning : reloaded.warnings()) absl::StrAppend(&text, "warning: ", warning, "\n");
  session.Print(reloaded, text);
  return 0;
}

}  // namespace

void AddPolicy(CLI::App& app, Session& session) {
  CLI::App& policy = *app.add_subcommand("policy", "show or reload the policy in force; check a policy file");
  policy.require_subcommand(1);
  CLI::App& check =
      *policy.add_subcommand("check", "check a file, and say what it means; warns of probable mistakes");
  const auto path = std::make_shared<std::string>();
  check.add_option("file", *path, "a policy file; see docs/admin/policies.md")->required();
  check.callback([&session, path] { session.run = [&session, path] { return Check(session, *path); }; });
  policy.add_subcommand("show", "the policy in force, the file it came from and when it was loaded")
      ->callback([&session] { session.run = [&session] { return Show(session); }; });
  policy.add_subcommand("reload", "load the policy file now, and say what changes (operators)")
      ->callback([&session] { session.run = [&session] { return Reload(session); }; });
}

}  // namespace siding::cli

// policy check: reads a policy file as the controller would; needs no controller.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/verbs/verbs.h"
#include "policy/policy_file.h"

namespace siding::cli {

void AddPolicy(CLI::App& app, Session& session) {
  CLI::App& policy = *app.add_subcommand("policy", "policy files: check one before it is put in force");
  policy.require_subcommand(1);
  CLI::App& check =
      *policy.add_subcommand("check", "whether the file is good, what it means, and what is odd about it");
  static std::string path;
  check.add_option("file", path, "a policy file; see docs/policies.md")->required();
  check.callback([&session] {
    session.run = [&session]() -> absl::StatusOr<int> {
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
    };
  });
}

}  // namespace siding::cli

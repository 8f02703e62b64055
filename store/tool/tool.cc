#include "store/tool/tool.h"

#include <CLI/CLI.hpp>

#include "common/manual/manual.h"
#include "store/tool/export.h"
#include "store/tool/look.h"
#include "store/tool/repair.h"
#include "store/tool/terminal.h"

namespace siding::store {
namespace {

constexpr char kFolderHelp[] = "a tier: an agent's --shared-dir, or store in its --state-dir";
constexpr char kRepairHelp[] =
    "replace damaged images by the same ones of another tier.\n"
    "Agents may be at work in both tiers: images are locked while they are written, and seen when they are "
    "whole. What siding has taken for damaged before does not count again by that.";

}  // namespace

int RunTool(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
            const std::function<bool()>& stop) {
  CLI::App app(
      "siding-store looks at the checkpoints in a folder, whether or not siding is running, and mends them");
  app.require_subcommand(1);
  LookOptions look;
  const auto add_look = [&](const std::string& name, const std::string& help) {
    CLI::App* verb = app.add_subcommand(name, help);
    verb->add_option("folder", look.folder, kFolderHelp)->required();
    verb->add_option("checkpoint", look.checkpoints, "only these, such as 42.3; default: all");
    verb->add_flag("--json", look.json, "print JSON");
    return verb;
  };
  CLI::App* list = add_look("list", "the images that are there, by their manifests, and what they take");
  CLI::App* verify = add_look("verify", "read every byte from the disk and compare checksums");
  verify->add_flag("--progress", look.progress, "say on stderr how far it is");

  ExportOptions exported;
  std::string checkpoint;
  CLI::App* export_verb = app.add_subcommand(
      "export", "write an image as plain CRIU files, with the memory of its processes: for criu and crit");
  export_verb->add_option("folder", exported.folder, kFolderHelp)->required();
  export_verb->add_option("checkpoint", checkpoint, "such as 42.3")->required();
  export_verb->add_option("rank", exported.key.rank, "the task of the job, such as 0")->required();
  export_verb->add_option("to", exported.to, "a folder that does not exist, or is empty")->required();
  export_verb->add_option("--key-file", exported.key_file,
                          "an agent's --encryption-key, for an encrypted image");
  export_verb->add_flag("--progress", exported.progress, "say on stderr how far it is");

  RepairOptions repair;
  CLI::App* repair_verb = app.add_subcommand("repair", kRepairHelp);
  repair_verb->add_option("folder", repair.folder, "the tier to be repaired")->required();
  repair_verb->add_option(
      "checkpoint", repair.checkpoints,
      "only these, such as 42.3, also what is missing of them; default: all that are there");
  repair_verb->add_option("--from", repair.from, "the tier that has good ones")->required();
  repair_verb->add_flag("--dry-run", repair.dry_run, "change nothing, and say what would be done");
  repair_verb->add_flag("--json", repair.json, "print JSON");
  repair_verb->add_flag("--progress", repair.progress, "say on stderr how far it is");

  app.set_version_flag("--version", "siding-store " SIDING_VERSION);
  AddManual(app, {"siding-store", 8, SIDING_VERSION, "/usr/share/doc/siding/admin/checkpoints.md"});
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kGood : kUsage;
  }
  const Terminal terminal{out, err, stop};
  if (export_verb->parsed()) exported.key.checkpoint = CheckpointId(checkpoint);
  const auto result = export_verb->parsed()   ? Export(exported, terminal)
                      : repair_verb->parsed() ? Repair(repair, terminal)
                      : list->parsed()        ? List(look, terminal)
                                              : Verify(look, terminal);
  if (!result.ok()) Complain(terminal, std::string(result.status().message()));
  if (result.ok() && *result == kStopped) Complain(terminal, "stopped");
  return result.value_or(kUsage);
}

}  // namespace siding::store

#include "store/tool.h"

#include <CLI/CLI.hpp>
#include <chrono>

#include "common/logging.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "store/layout.h"

namespace siding::store {
namespace {

constexpr int kGood = 0;
constexpr int kNotGood = 1;
constexpr int kUsage = 2;
constexpr auto kProgressInterval = std::chrono::milliseconds(200);

struct Options {
  std::string folder;
  std::vector<std::string> checkpoints;  // none: all
  bool json = false;
  bool progress = false;
};

// Of which images are to be looked at. kNotFound names a checkpoint that has none.
absl::StatusOr<std::vector<ImageKey>> Choose(const ImageStore& store, const Options& options) {
  SIDING_ASSIGN_OR_RETURN(std::vector<ImageKey> all, store.List());
  if (options.checkpoints.empty()) return all;
  std::vector<ImageKey> chosen;
  for (const std::string& name : options.checkpoints) {
    const size_t before = chosen.size();
    std::copy_if(all.begin(), all.end(), std::back_inserter(chosen),
                 [&](const ImageKey& key) { return key.checkpoint.value() == name; });
    if (chosen.size() == before)
      return absl::NotFoundError(
          absl::StrCat("there is no image of checkpoint ", name, " in ", options.folder));
  }
  return chosen;
}

nlohmann::ordered_json ToJson(const ImageKey& key, const absl::StatusOr<Manifest>& manifest) {
  nlohmann::ordered_json image = {{"checkpoint", key.checkpoint.value()}, {"rank", key.rank}};
  image["good"] = manifest.ok();
  if (manifest.ok()) {
    image["files"] = manifest->files.size();
    image["bytes"] = manifest->TotalSize().value;
    image["created"] = FormatTime(manifest->created);
  } else {
    image["damaged"] = absl::IsDataLoss(manifest.status());
    image["problem"] = std::string(manifest.status().message());
  }
  return image;
}

std::string ToLine(const ImageKey& key, const absl::StatusOr<Manifest>& manifest) {
  const std::string name = Describe(key);
  if (manifest.ok()) {
    return absl::StrCat(name, ": ", manifest->files.size(), " files, ", FormatBytes(manifest->TotalSize()),
                        ", made ", FormatTime(manifest->created));
  }
  return absl::StrCat(name, absl::IsDataLoss(manifest.status()) ? ": DAMAGED: " : ": cannot be read: ",
                      std::string(manifest.status().message()));
}

absl::StatusOr<Manifest> VerifyOne(const ImageStore& store, const ImageKey& key, bool progress,
                                   std::ostream& err) {
  VerifyOptions options{.from_disk = true};
  auto told = std::chrono::steady_clock::now();
  options.progress = [&](Bytes done) {
    const auto now = std::chrono::steady_clock::now();
    if (!progress || now - told < kProgressInterval) return true;
    told = now;
    err << "\r" << Describe(key) << ": " << FormatBytes(done) << " read   " << std::flush;
    return true;
  };
  auto manifest = store.Verify(key, options);
  if (progress) err << "\r" << std::string(60, ' ') << "\r" << std::flush;
  return manifest;
}

absl::StatusOr<int> Look(const Options& options, bool verify, std::ostream& out, std::ostream& err) {
  SIDING_ASSIGN_OR_RETURN(const auto store, InspectDirectoryStore(options.folder));
  SIDING_ASSIGN_OR_RETURN(const std::vector<ImageKey> keys, Choose(*store, options));
  bool all_good = true;
  auto images = nlohmann::ordered_json::array();
  for (const ImageKey& key : keys) {
    const auto manifest = verify ? VerifyOne(*store, key, options.progress, err) : store->Read(key);
    if (absl::IsNotFound(manifest.status())) continue;  // deleted meanwhile
    all_good &= manifest.ok();
    if (options.json)
      images.push_back(ToJson(key, manifest));
    else
      out << OneLogLine(ToLine(key, manifest)) << (verify && manifest.ok() ? ", good\n" : "\n") << std::flush;
  }
  // Names of files that are no text among them.
  const nlohmann::ordered_json all = {{"images", std::move(images)}};
  if (options.json) out << all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  return all_good ? kGood : kNotGood;
}

}  // namespace

int RunTool(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app("siding-store looks at the checkpoints in a folder, whether or not siding is running");
  Options options;
  app.require_subcommand(1);
  const auto add = [&](const std::string& name, const std::string& help) {
    CLI::App* verb = app.add_subcommand(name, help);
    verb->add_option("folder", options.folder, "a tier: an agent's --shared-dir, or store in its --state-dir")
        ->required();
    verb->add_option("checkpoint", options.checkpoints, "only these, such as 42.3; default: all");
    verb->add_flag("--json", options.json, "print JSON");
    return verb;
  };
  add("list", "the images that are there, by their manifests");
  CLI::App* verify = add("verify", "read every byte from the disk and compare checksums");
  verify->add_flag("--progress", options.progress, "say on stderr how far it is");
  app.set_version_flag("--version", "siding-store " SIDING_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kGood : kUsage;
  }
  const absl::StatusOr<int> result = Look(options, verify->parsed(), out, err);
  if (result.ok()) return *result;
  err << "siding-store: " << OneLogLine(std::string(result.status().message())) << "\n";
  return kUsage;
}

}  // namespace siding::store

#include "store/tool/repair.h"

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "store/layout.h"
#include "store/parents.h"
#include "store/tool/choose.h"

namespace siding::store {
namespace {

using RepairJson = nlohmann::ordered_json;

// What became of one image.
struct Outcome {
  enum What { kGoodAlready, kRepaired, kWouldBeRepaired, kNotRepaired };
  What what = kGoodAlready;
  bool missing = false;  // it was not there
  bool damaged = false;  // it was; neither: it could not be read
  std::string problem;   // what was wrong with it
  std::string failure;   // why it was not repaired
  Bytes written;
  bool set_aside = false;

  bool good() const { return what != kNotRepaired; }
};

bool IsSameFolder(const std::string& one, const std::string& other) {
  struct stat first = {}, second = {};
  return stat(one.c_str(), &first) == 0 && stat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

class Repairing {
 public:
  Repairing(const RepairOptions& options, const Terminal& terminal)
      : options_(options), terminal_(terminal) {}

  absl::Status Open() {
    SIDING_ASSIGN_OR_RETURN(tier_, InspectDirectoryStore(options_.folder));
    auto other = InspectDirectoryStore(options_.from);
    if (!other.ok()) return Annotate(other.status(), "--from");
    other_ = *std::move(other);
    if (IsSameFolder(Layout{options_.folder}.Images(), Layout{options_.from}.Images()))
      return absl::InvalidArgumentError(absl::StrCat(
          "--from: ", options_.from, " is the tier that is to be repaired; expected another one"));
    if (options_.dry_run) return absl::OkStatus();
    SIDING_ASSIGN_OR_RETURN(writable_, OpenDirectoryStore(options_.folder, {.visit = true}));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ImageKey>> Keys() {
    SIDING_ASSIGN_OR_RETURN(std::vector<ImageKey> here, tier_->List());
    was_there_ = {here.begin(), here.end()};
    if (options_.checkpoints.empty()) return here;
    SIDING_ASSIGN_OR_RETURN(const std::vector<ImageKey> there, other_->List());
    here.insert(here.end(), there.begin(), there.end());
    return Choose(here, options_.checkpoints,
                  absl::StrCat("in ", options_.folder, ", nor in ", options_.from));
  }

  // kCancelled; nullopt if it was deleted meanwhile.
  absl::StatusOr<std::optional<Outcome>> One(const ImageKey& key) const {
    const auto held = tier_->Hold(key);
    SIDING_ASSIGN_OR_RETURN(std::optional<Outcome> outcome, Look(key));
    if (!outcome.has_value() || outcome->good() || !held.ok() || IsStillThere(*tier_, key, *held))
      return outcome;
    // An agent has deleted or replaced it.
    const auto again = Read(*tier_, key, "");
    if (absl::IsCancelled(again.status())) return again.status();
    if (again.ok()) return Outcome();
    if (absl::IsNotFound(again.status()) && !outcome->missing) return std::nullopt;
    return outcome;
  }

 private:
  absl::StatusOr<std::optional<Outcome>> Look(const ImageKey& key) const {
    const auto found = Read(*tier_, key, "");
    Outcome outcome;
    if (found.ok()) return outcome;
    if (absl::IsCancelled(found.status())) return found.status();
    outcome.missing = absl::IsNotFound(found.status());
    outcome.damaged = absl::IsDataLoss(found.status());
    if (outcome.missing && was_there_.count(key) > 0) return std::nullopt;
    outcome.problem = std::string(found.status().message());
    const auto copied = Replace(key, outcome);
    if (absl::IsCancelled(copied.status())) return copied.status();
    if (copied.ok()) {
      if (copied->what == Copied::kWasGood) return Outcome();  // it is by now
      outcome.what = options_.dry_run ? Outcome::kWouldBeRepaired : Outcome::kRepaired;
      outcome.written = copied->written;
      outcome.set_aside = copied->what == Copied::kReplaced;
    } else {
      outcome.what = Outcome::kNotRepaired;
      outcome.failure = std::string(copied.status().message());
    }
    return outcome;
  }

  absl::StatusOr<Manifest> Read(const ImageStore& store, const ImageKey& key,
                                const std::string& digest) const {
    return VerifyShown(store, key, {.from_disk = true, .digest = digest}, options_.progress, terminal_);
  }

  absl::StatusOr<Copied> Replace(const ImageKey& key, const Outcome& outcome) const {
    // It may be good, or of a newer siding.
    if (!outcome.missing && !outcome.damaged)
      return absl::FailedPreconditionError("what cannot be read is not known to be damaged");
    const auto own = tier_->Read(key);
    // Then it is not known either which image it was.
    if (!outcome.missing && absl::IsNotFound(own.status()))
      return absl::AbortedError("it was deleted while it was repaired");
    if (!own.ok() && options_.checkpoints.empty())
      return absl::FailedPreconditionError(
          absl::StrCat("of its manifest nothing is left to compare with; to take the image that ",
                       options_.from, " has of it, name checkpoint ", key.checkpoint.value()));
    const std::string digest = own.ok() ? own->digest : "";
    if (options_.dry_run) {
      SIDING_RETURN_IF_ERROR(Read(*other_, key, digest).status());
      return Copied{};
    }
    const std::vector<Manifest> bases = Bases(key);
    CopyOptions copy{.digest = digest, .reads_bases = true, .only_replaces = !outcome.missing};
    for (const Manifest& base : bases) copy.bases.push_back(&base);
    ProgressLine line(terminal_.err, options_.progress);
    copy.progress = [&](Bytes written, Bytes all) {
      line.Show([&] {
        if (all == Bytes{}) return Describe(key) + ": what is there is read";
        return absl::StrCat(Describe(key), ": ", FormatBytes(written), " of ", FormatBytes(all), " written");
      });
      return !terminal_.stop();
    };
    SIDING_ASSIGN_OR_RETURN(const Copied copied, writable_->CopyFrom(*other_, key, copy));
    SIDING_RETURN_IF_ERROR(Read(*tier_, key, digest).status());
    return copied;
  }

  // Images of the tier that may have files of that one: first itself.
  std::vector<Manifest> Bases(const ImageKey& key) const {
    std::vector<Manifest> bases;
    if (auto own = tier_->Read(key); own.ok()) bases.push_back(*std::move(own));
    for (const ImageKey& other : tier_->List().value_or(std::vector<ImageKey>())) {
      if (other == key || other.rank != key.rank || JobPartOf(other.checkpoint) != JobPartOf(key.checkpoint))
        continue;
      if (auto manifest = tier_->Read(other); manifest.ok()) bases.push_back(*std::move(manifest));
    }
    return bases;
  }

  const RepairOptions& options_;
  const Terminal& terminal_;
  std::unique_ptr<const ImageStore> tier_;
  std::unique_ptr<const ImageStore> other_;
  std::set<ImageKey> was_there_;          // what is no longer was deleted meanwhile
  std::unique_ptr<ImageStore> writable_;  // tier_; null: it is a dry run
};

const char* StateBefore(const Outcome& outcome) {
  if (outcome.what == Outcome::kGoodAlready) return "good";
  if (outcome.missing) return "missing";
  return outcome.damaged ? "damaged" : "unreadable";
}

RepairJson ToJson(const ImageKey& key, const Outcome& outcome) {
  constexpr const char* kActions[] = {"none", "repaired", "would-repair", "failed"};
  RepairJson image = {{"checkpoint", key.checkpoint.value()}, {"rank", key.rank}};
  image["was"] = StateBefore(outcome);
  image["action"] = kActions[outcome.what];
  if (!outcome.problem.empty()) image["problem"] = outcome.problem;
  if (!outcome.failure.empty()) image["failure"] = outcome.failure;
  if (outcome.what == Outcome::kRepaired) image["written_bytes"] = outcome.written.value;
  return image;
}

std::string ToLine(const ImageKey& key, const Outcome& outcome, const RepairOptions& options) {
  const std::string name = Describe(key);
  if (outcome.what == Outcome::kGoodAlready) return name + ": good";
  switch (outcome.what) {
    case Outcome::kRepaired:
      return absl::StrCat(
          name, ": repaired, ", FormatBytes(outcome.written), " written; ",
          !outcome.set_aside ? "" : absl::StrCat("set aside in ", Layout{options.folder}.Damaged(), ": "),
          outcome.problem);
    case Outcome::kWouldBeRepaired:
      return absl::StrCat(name, ": would be repaired: ", outcome.problem);
    default:
      return absl::StrCat(name, ": NOT REPAIRED: ", outcome.failure, "; ", outcome.problem);
  }
}

}  // namespace

absl::StatusOr<ToolExit> Repair(const RepairOptions& options, const Terminal& terminal) {
  Repairing repairing(options, terminal);
  SIDING_RETURN_IF_ERROR(repairing.Open());
  SIDING_ASSIGN_OR_RETURN(const std::vector<ImageKey> keys, repairing.Keys());
  ToolExit exit = kGood;
  RepairJson images = RepairJson::array();
  for (const ImageKey& key : keys) {
    const auto outcome = repairing.One(key);
    if (!outcome.ok()) {
      exit = kStopped;
      break;
    }
    if (!outcome->has_value()) continue;
    const Outcome& one = **outcome;
    if (!one.good()) exit = kNotGood;
    if (options.json)
      images.push_back(ToJson(key, one));
    else
      Say(terminal, ToLine(key, one, options));
  }
  const RepairJson all = {{"images", std::move(images)}};
  // Names of files that are no text among them.
  if (options.json) terminal.out << all.dump(2, ' ', false, RepairJson::error_handler_t::replace) << "\n";
  return exit;
}

}  // namespace siding::store

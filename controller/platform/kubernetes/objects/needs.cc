#include "controller/platform/kubernetes/objects/needs.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "controller/platform/kubernetes/objects/quantity.h"

namespace siding::kubernetes {
namespace {

// Of what controller/wire/check.h lets through.
constexpr int64_t kMostCounted = 1'000'000;
constexpr Bytes kMostMemory{int64_t{1} << 50};

int64_t Sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

int Small(int64_t value) {
  return static_cast<int>(std::min<int64_t>(value, std::numeric_limits<int>::max()));
}

// Of each the one that `choose` makes of both.
template <class Choose>
Amounts Each(const Amounts& a, const Amounts& b, Choose choose) {
  Amounts both = a;
  both.cpu = choose(a.cpu, b.cpu);
  both.memory = Bytes{choose(a.memory.value, b.memory.value)};
  both.gpus = Small(choose(int64_t{a.gpus}, int64_t{b.gpus}));
  for (const auto& [name, amount] : b.others) both.others[name] = choose(both.others[name], amount);
  return both;
}

Amounts Most(const Amounts& a, const Amounts& b) {
  return Each(a, b, [](int64_t x, int64_t y) { return std::max(x, y); });
}

absl::StatusOr<Amounts> OfContainer(const Json& container) {
  absl::StatusOr<Amounts> amounts = AmountsFrom(Find(container, {"resources", "requests"}));
  if (amounts.ok()) return amounts;
  return absl::InvalidArgumentError(
      absl::StrCat("container ", TextAt(container, {"name"}), ": ", amounts.status().message()));
}

// What the pod's own resources say counts instead of its containers'.
absl::Status TakePodLevel(const Json& pod, Amounts& amounts) {
  const Json* said = Find(pod, {"spec", "resources", "requests"});
  SIDING_ASSIGN_OR_RETURN(const Amounts whole, AmountsFrom(said));
  if (said == nullptr) return absl::OkStatus();
  if (said->contains("cpu")) amounts.cpu = whole.cpu;
  if (said->contains("memory")) amounts.memory = whole.memory;
  for (const auto& [name, amount] : whole.others) amounts.others[name] = amount;
  return absl::OkStatus();
}

}  // namespace

Amounts operator+(const Amounts& a, const Amounts& b) { return Each(a, b, Sum); }

absl::StatusOr<Amounts> AmountsFrom(const Json* resources) {
  Amounts amounts;
  if (resources == nullptr || resources->is_null()) return amounts;
  if (!resources->is_object()) return absl::InvalidArgumentError("resources: expected an object");
  for (const auto& [name, said] : resources->items()) {
    const std::string text = said.is_string() ? said.get<std::string>() : WriteJson(said);
    const absl::StatusOr<int64_t> amount =
        name == "cpu" ? ParseQuantityInThousandths(text) : ParseQuantity(text);
    if (!amount.ok()) return absl::InvalidArgumentError(absl::StrCat(name, ": ", amount.status().message()));
    if (name == "cpu") {
      amounts.cpu = *amount;
    } else if (name == "memory") {
      amounts.memory = Bytes{*amount};
    } else if (absl::EndsWith(name, "/gpu")) {
      amounts.gpus = Small(Sum(amounts.gpus, *amount));
    } else if (name != "pods" && *amount > 0) {
      amounts.others[name] = *amount;
    }
  }
  return amounts;
}

absl::StatusOr<Amounts> RequestsOf(const Json& pod) {
  Amounts together;
  for (const Json& container : ListAt(pod, {"spec", "containers"})) {
    SIDING_ASSIGN_OR_RETURN(const Amounts amounts, OfContainer(container));
    together = together + amounts;
  }
  // Init containers run one after another, those before that always restart run on.
  Amounts beside;
  Amounts most_of_init;
  for (const Json& container : ListAt(pod, {"spec", "initContainers"})) {
    SIDING_ASSIGN_OR_RETURN(const Amounts amounts, OfContainer(container));
    most_of_init = Most(most_of_init, beside + amounts);
    if (TextAt(container, {"restartPolicy"}) == "Always") beside = beside + amounts;
  }
  Amounts requests = Most(together + beside, most_of_init);
  SIDING_RETURN_IF_ERROR(TakePodLevel(pod, requests));
  SIDING_ASSIGN_OR_RETURN(const Amounts overhead, AmountsFrom(Find(pod, {"spec", "overhead"})));
  return requests + overhead;
}

Resources ToResources(const Amounts& amounts) {
  return {Small(std::min(amounts.cpu, kMostCounted)), std::min(amounts.memory, kMostMemory),
          Small(std::min<int64_t>(amounts.gpus, kMostCounted))};
}

}  // namespace siding::kubernetes

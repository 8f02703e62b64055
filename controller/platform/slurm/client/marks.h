// How Slurm's users see, and siding finds again, what siding has done to a job: a mark before whatever else
// the job's AdminComment says. "[siding pinned: makes way for job 42] bring back before Friday". And
// what the plugin has put before the user's own Comment: "[siding start-by=2026-11-21T12:00:00.000000Z]".
// Pure.
#pragma once

#include <optional>
#include <string>

#include "common/units.h"

namespace siding::slurm {

// Reservations of siding's begin so.
inline constexpr char kReservationPrefix[] = "siding-";

struct Mark {
  bool pinned = false;     // siding chose its nodes (ReqNodeList), and is to free it of them
  std::string why;         // for people
  bool suspended = false;  // siding suspended it, and is to resume it
  // siding changed its nice value, and is to set it back.
  struct Nice {
    int64_t from = 0;
    int64_t to = 0;
    bool operator==(const Nice&) const = default;
  };
  std::optional<Nice> nice;
  bool operator==(const Mark&) const = default;
};

// Nothing: siding has not marked it.
std::optional<Mark> MarkOf(const std::string& admin_comment);
// The comment with this mark, or none, in the place of the one it has. What else it says stays.
std::string WithMark(const std::string& admin_comment, const std::optional<Mark>& mark);

// The deadline of a job that was submitted with one; nothing: of any other.
std::optional<Time> StartByOf(const std::string& comment);

}  // namespace siding::slurm

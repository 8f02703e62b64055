// How Slurm's users see, and siding finds again, what siding has done to a job: a mark before whatever else
// the job's AdminComment says. "[siding held pinned: makes way for job 42] bring back before Friday". Pure.
#pragma once

#include <optional>
#include <string>

#include "common/units.h"

namespace siding::slurm {

// Reservations of siding's begin so.
inline constexpr char kReservationPrefix[] = "siding-";

struct Mark {
  bool held = false;       // siding holds it, and is to release it
  bool pinned = false;     // siding chose its nodes (ReqNodeList), and is to free it of them
  std::string why;         // for people
  bool suspended = false;  // siding suspended it, and is to resume it
  bool operator==(const Mark&) const = default;
};

// Nothing: siding has not marked it.
std::optional<Mark> MarkOf(const std::string& admin_comment);
// The comment with this mark, or none, in the place of the one it has. What else it says stays.
std::string WithMark(const std::string& admin_comment, const std::optional<Mark>& mark);

// A job with a deadline says so at the beginning of its comment: "[siding start-by=2026-05-01T12:00:00Z]".
// Nothing: this one does not.
std::optional<Time> StartByOf(const std::string& comment);

}  // namespace siding::slurm

// What the end of a task's processes means, given what had been ordered.
#pragma once

#include <functional>

#include "agent/task/shim.pb.h"
#include "agent/task/task_record.pb.h"

namespace siding {

// Its processes are gone, and what became of it is in its report.
bool IsOver(v1::TaskPhase phase);

enum class Ending {
  kItsOwn,        // the command ended, or was ended for good
  kCheckpointed,  // its state is in an image
  kSaved,         // it saved itself
};

// A program without a marker ends when it has saved itself. Once told to, it may do so at any time, even
// after the save was given up.
inline bool EndsBySaving(const v1::AppMethod& app) { return app.marker().empty(); }
// Right before the program is told. If the agent dies now, an end with 0 is taken for a save: a job that
// continues from an old save loses less than one that is wrongly taken for done.
void NoteTold(agent::TaskRecord& record, const v1::Save& save);
// When the save is over, however it went, and whether or not the program has been told.
// `marked`: it has written its marker.
void NoteSave(agent::TaskRecord& record, const v1::Save& save, bool marked);

// `exit` is null if it is not known how the processes ended. `image_visible` is called only if it matters: is
// the image of the record's dump in its store?
Ending JudgeEnding(const agent::TaskRecord& record, const agent::ShimExit* exit,
                   const std::function<bool()>& image_visible);
// Decides what the end means, and completes the task's report. Returns the phase that it ends in.
v1::TaskPhase ReportEnding(agent::TaskRecord& record, const agent::ShimExit* exit,
                           const std::function<bool()>& image_visible);

}  // namespace siding

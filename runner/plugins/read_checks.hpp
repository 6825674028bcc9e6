// What `headroom plugins check` asks of a source's reads, in every split. A violation is Error(plugin): what the plugin
// did, and what it has to do instead.
#pragma once

#include <functional>

#include "plugins/check_list.hpp"
#include "plugins/source.hpp"

namespace headroom {

// A read writes every byte of its slots and none beside them. [control]
void require_filled_slots(const Source& source);

// A sample is the same whatever is read with it. [control]
void require_pure_reads(const Source& source);

// Where it is not to augment, a sample is the same for every key. [control]
void require_plain_reads(const Source& source);

// A sample is the same while other threads read. A read that is not safe shows this with some luck only. [control]
void require_reads_on_threads(const Source& source);

// Fields to standardise are the same where the others are not wanted. [control]
void require_reads_of_single_fields(const Source& source);

// A source that says HR_SOURCE_NO_AUGMENT reads the same for every key. [control]
void require_reads_without_keys(const Source& source);

// All of them, one line each; a sample that cannot be read is none's fault. `source` may throw DoesNotApply. [control]
void check_reads(CheckList& list, const std::function<const Source&()>& source);

}  // namespace headroom

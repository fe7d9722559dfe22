//! Contract section 8: objects in payloads (OBJ): the table of items.
//! Not here: the tests by kind: [`listing`] (accepted object lists), [`nodes`], [`fds`], [`buffers`], [`fd_arrays`],
//! [`security`], [`refused`] (what a refusal leaves as it was).

mod buffers;
mod fd_arrays;
mod fds;
mod listing;
mod nodes;
mod refused;
mod security;

use crate::prelude::*;

items! {
    "OBJ-01" Both [seen] obj_01_objects_are_whole_and_in_order in listing "objects are whole, known, aligned to 4, in order and apart";
    "OBJ-02" Both [seen] obj_02_sizes_are_multiples_of_8 in listing "sizes of offsets and scatter-gather buffers are multiples of 8";
    "OBJ-03" Both [seen] obj_03_a_node_becomes_a_handle in nodes "a node arrives as a handle of the same strength";
    "OBJ-04" Both [] obj_04_the_first_send_fixes_the_flags in nodes "a node's first send creates it and fixes its flags";
    "OBJ-05" Both [seen] obj_05_a_ptr_has_one_cookie in nodes "a ptr sent again with another cookie fails";
    "OBJ-06" Both [] obj_06_a_handle_becomes_what_the_receiver_has in nodes "a handle arrives as the owner's node or the receiver's handle";
    "OBJ-07" Both [] obj_07_passing_on_needs_a_count in nodes "passing a handle on needs a count of its strength";
    "OBJ-08" Both [] obj_08_each_occurrence_is_a_count in nodes "one handle per node and process, one count per occurrence";
    "OBJ-09" Both [seen] obj_09_descriptors_need_leave in fds "descriptors need the node's permission in a call, the caller's in a reply";
    "OBJ-10" Both [seen] obj_10_a_bad_descriptor_fails in fds "a descriptor that is not open fails";
    "OBJ-11" Both [] obj_11_a_received_descriptor_is_new in fds "a received descriptor is a new one of the same open file";
    "OBJ-12" C [] obj_12_a_receiver_out_of_descriptors in fds "a receiver out of descriptors fails the caller";
    "OBJ-13" Both [seen] obj_13_only_arrays_are_closed_by_free in fd_arrays "FREE_BUFFER closes descriptors of arrays and no others";
    "OBJ-14" Both [] obj_14_the_file_is_held_from_send_to_delivery in fds "a file is held from its send to its delivery or drop";
    "OBJ-15" Both [seen] obj_15_scattered_buffers_follow_the_offsets in buffers "scatter-gather buffers are copied after the offsets, as far as requested";
    "OBJ-16" Both [seen] obj_16_a_child_is_patched_into_its_parent in buffers "a child's new address is patched into its parent's copy";
    "OBJ-17" Both [] obj_17_parents_are_patched_in_order in buffers "only the last buffer and its ancestors can be patched, in ascending order";
    "OBJ-18" C [seen] obj_18_no_parent_at_offset_0 in buffers "a buffer at data offset 0 cannot be a parent";
    "OBJ-19" Both [] obj_19_arrays_of_descriptors in fd_arrays "an array's descriptors arrive in its parent's copy";
    "OBJ-20" Both [] obj_20_the_rest_is_copied in listing "bytes that the offsets do not list are copied unchanged";
    "OBJ-21" Both [] obj_21_calls_carry_a_security_context in security "a node that requests it gets the caller's security context";
    "OBJ-22" Both [seen] obj_22_without_contexts_such_calls_fail in security "without a source of security contexts such calls fail";
    "OBJ-23" Both [] obj_23_a_security_module_may_refuse in security "a security module may refuse a call, a node or a file";
    "OBJ-24" Both [] obj_24_a_refused_call_takes_no_counts in refused "a refused call changes no counts of what it lists";
    "OBJ-25" Both [] obj_25_a_weak_node_may_go_on in refused "a weak node that its owner has not heard of yet may be passed on";
    "OBJ-26" Both [] obj_26_a_refused_call_closes_nothing in refused "a refused call closes no descriptor";
    "OBJ-27" Both [] obj_27_a_parent_is_listed_before in refused "a parent is one of the objects before, whatever the buffer held";
    "OBJ-28" Both [] obj_28_a_context_has_room_to_itself in security "scatter-gather buffers leave the security context's room alone";
}

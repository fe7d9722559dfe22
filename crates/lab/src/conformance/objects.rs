//! Room: contract section 8: objects in payloads (OBJ): the table, and what its tests are made of.
//! Not here: the tests, by kind: [`listing`] (which payloads are accepted), [`nodes`], [`fds`],
//! [`buffers`], [`fd_arrays`], [`security`].

mod buffers;
mod draft;
mod fd_arrays;
mod fds;
mod listing;
mod nodes;
mod security;

use self::buffers::{
    obj_15_scattered_buffers_follow_the_offsets, obj_16_a_child_is_patched_into_its_parent,
    obj_17_parents_are_patched_in_order, obj_18_no_parent_at_offset_0,
};
use self::fd_arrays::{obj_13_only_arrays_are_closed_by_free, obj_19_arrays_of_descriptors};
use self::fds::{
    obj_09_descriptors_need_leave, obj_10_a_bad_descriptor_fails, obj_11_a_received_descriptor_is_new,
    obj_12_a_receiver_out_of_descriptors, obj_14_the_file_is_held_from_send_to_delivery,
};
use self::listing::{
    obj_01_objects_are_whole_and_in_order, obj_02_sizes_are_multiples_of_8, obj_20_the_rest_is_copied,
};
use self::nodes::{
    obj_03_a_node_becomes_a_handle, obj_04_the_first_send_fixes_the_flags, obj_05_a_ptr_has_one_cookie,
    obj_06_a_handle_becomes_what_the_receiver_has, obj_07_passing_on_needs_a_count,
    obj_08_each_occurrence_is_a_count,
};
use self::security::{
    obj_21_calls_carry_a_security_context, obj_22_without_contexts_such_calls_fail,
    obj_23_a_security_module_may_refuse,
};
use super::item::items;

items! {
    "OBJ-01" Both [seen] obj_01_objects_are_whole_and_in_order "objects are whole, known, aligned to 4, in order and apart";
    "OBJ-02" Both [seen] obj_02_sizes_are_multiples_of_8 "sizes of offsets and scattered buffers are multiples of 8";
    "OBJ-03" Both [seen] obj_03_a_node_becomes_a_handle "a node arrives as a handle of the same strength";
    "OBJ-04" Both [] obj_04_the_first_send_fixes_the_flags "a node's first send makes it and fixes its flags";
    "OBJ-05" Both [seen] obj_05_a_ptr_has_one_cookie "a ptr sent again with another cookie fails";
    "OBJ-06" Both [] obj_06_a_handle_becomes_what_the_receiver_has "a handle arrives as the owner's node or the receiver's handle";
    "OBJ-07" Both [] obj_07_passing_on_needs_a_count "passing a handle on needs a count of its strength";
    "OBJ-08" Both [] obj_08_each_occurrence_is_a_count "one handle a node and process, one count an occurrence";
    "OBJ-09" Both [seen] obj_09_descriptors_need_leave "descriptors need the node's leave in a call, the caller's in a reply";
    "OBJ-10" Both [seen] obj_10_a_bad_descriptor_fails "a descriptor that is not open fails";
    "OBJ-11" Both [] obj_11_a_received_descriptor_is_new "a received descriptor is a new one of the same open file";
    "OBJ-12" C [] obj_12_a_receiver_out_of_descriptors "a receiver out of descriptors fails the caller";
    "OBJ-13" Both [seen] obj_13_only_arrays_are_closed_by_free "FREE_BUFFER closes descriptors of arrays and no others";
    "OBJ-14" Both [] obj_14_the_file_is_held_from_send_to_delivery "a file is held from its send to its delivery or drop";
    "OBJ-15" Both [seen] obj_15_scattered_buffers_follow_the_offsets "scattered buffers are copied behind the offsets, as far as was asked for";
    "OBJ-16" Both [seen] obj_16_a_child_is_patched_into_its_parent "a child's new address is patched into its parent's copy";
    "OBJ-17" Both [] obj_17_parents_are_patched_in_order "only the last buffer and its ancestors can be patched, in ascending order";
    "OBJ-18" C [seen] obj_18_no_parent_at_offset_0 "a buffer at data offset 0 cannot be a parent";
    "OBJ-19" Both [] obj_19_arrays_of_descriptors "an array's descriptors arrive in its parent's copy";
    "OBJ-20" Both [] obj_20_the_rest_is_copied "what the offsets do not list is copied as it is";
    "OBJ-21" Both [] obj_21_calls_carry_a_security_context "a node that asks for it is told the caller's security context";
    "OBJ-22" Both [seen] obj_22_without_contexts_such_calls_fail "without a source of security contexts such calls fail";
    "OBJ-23" Both [] obj_23_a_security_module_may_refuse "a security module may refuse a call, a node or a file";
}

//! Transaction codes that every object answers, by name.
//! Facts: Android's `IBinder.h`; libhwbinder's `IBinder.h` and `android.hidl.base@1.0::IBase`; AIDL's generated code counts
//! the two methods of stable interfaces from the first code, 1.

/// Name of a code that means the same for every interface.
#[must_use]
pub fn code_name(code: u32) -> Option<&'static str> {
    Some(match &code.to_be_bytes() {
        b"_PNG" => "PING",
        b"_DMP" => "DUMP",
        b"_CMD" => "SHELL_COMMAND",
        b"_NTF" => "INTERFACE",
        b"_SPR" => "SYSPROPS",
        b"_EXT" => "EXTENSION",
        b"_PID" => "DEBUG_PID",
        b"_LIK" => "LIKE",
        b"_TWT" => "TWEET",
        b"\x0fPNG" => "IBase.ping",
        b"\x0fCHN" => "IBase.interfaceChain",
        b"\x0fDSC" => "IBase.interfaceDescriptor",
        b"\x0fDBG" => "IBase.debug",
        b"\x0fHSH" => "IBase.getHashChain",
        b"\x0fINT" => "IBase.setHALInstrumentation",
        b"\x0fLTD" => "IBase.linkToDeath",
        b"\x0fUTD" => "IBase.unlinkToDeath",
        b"\x0fSYS" => "IBase.notifySyspropsChanged",
        b"\x0fREF" => "IBase.getDebugInfo",
        b"\x00\xff\xff\xff" => "getInterfaceVersion",
        b"\x00\xff\xff\xfe" => "getInterfaceHash",
        _ => return None,
    })
}

/// A code as a row or a sentence has it: its name, or its number.
pub(super) fn code_words(code: u32) -> String {
    code_name(code).map_or_else(|| format!("code {code}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_every_object_answers_have_names() {
        for (code, name) in [
            (1_599_098_439, "PING"),
            (1_598_311_760, "DUMP"),
            (1_598_246_212, "SHELL_COMMAND"),
            (1_598_968_902, "INTERFACE"),
            (1_599_295_570, "SYSPROPS"),
            (1_598_835_019, "LIKE"),
            (1_599_362_900, "TWEET"),
            (256_921_159, "IBase.ping"),
            (256_067_662, "IBase.interfaceChain"),
            (16_777_215, "getInterfaceVersion"),
        ] {
            assert_eq!(code_name(code), Some(name));
        }
        assert_eq!((code_name(1), code_words(3).as_str()), (None, "code 3"));
    }
}
